// Fields of an entry that are open take what another entry says: a program's annotations under what the
// caller of a compilation gives.
#pragma once

#include <algorithm>

#include "plan/schedule_fields.h"

namespace tilegen::plan {

template <class E>
struct OpenFields {
  E& to;
  const E& from;

  void operator()(const NameField<E>&) const {}
  void operator()(const RequiredText<E>&) const {}
  void operator()(const OriginField<E>&) const {}
  void operator()(const StorageField<E>&) const {}
  void operator()(const KindField<E>&) const {}
  void operator()(const FragmentField<E>&) const {}
  void operator()(const ReasonField<E>&) const {}
  void operator()(const SetFlag<E>&) const {}  // of a whole part
  template <class F>
  void operator()(const F& f) const {
    if constexpr (std::is_same_v<F, NumberField<E>>) {
      if (to.*f.at == f.open) to.*f.at = from.*f.at;
    } else if (to.*f.at == std::decay_t<decltype(to.*f.at)>()) {
      to.*f.at = from.*f.at;
    }
  }
};

template <class E>
void fill_open(E& to, const E& from) {
  for_each_field<E>(OpenFields<E>{to, from});
}

template <class E>
void fill_open(std::optional<E>& to, const std::optional<E>& from) {
  if (to && from) fill_open(*to, *from);
  if (!to) to = from;
}

template <class E>
void fill_open(std::vector<E>& to, const std::vector<E>& from, std::string E::*name) {
  for (const E& f : from) {
    const auto own = std::find_if(to.begin(), to.end(), [&](const E& t) { return t.*name == f.*name; });
    own == to.end() ? to.push_back(f) : fill_open(*own, f);
  }
}

// Of the parts that annotations have.
inline void fill_open(KernelSchedule& to, const KernelSchedule& from) {
  fill_open(to.raster, from.raster);
  fill_open(to.persistence, from.persistence);
  fill_open(to.cluster, from.cluster);
  fill_open(to.split, from.split);
  fill_open(to.overlap, from.overlap);
  fill_open(to.launch, from.launch);
  fill_open(to.ops, from.ops, &OpPlan::op);
  fill_open(to.values, from.values, &ValuePlan::value);
  fill_open(to.loops, from.loops, &LoopPlan::loop);
}

}  // namespace tilegen::plan
