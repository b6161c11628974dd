// What a given entry says, against what was planned.
//
// A field that says nothing is not compared. Reasons and origins are no decisions.
#pragma once

#include <algorithm>
#include <string>

#include "plan/schedule_fields.h"

namespace tilegen::plan {

inline std::string field_text(int64_t v) { return std::to_string(v); }
inline std::string field_text(bool v) { return v ? "true" : "false"; }
inline std::string field_text(const std::string& v) { return "'" + v + "'"; }
inline std::string field_text(Engine v) { return std::string("'") + engine_name(v) + "'"; }
inline std::string field_text(const layout::Fragment& v) { return v.to_text(); }
inline std::string field_text(const layout::Layout& v) { return v.to_text(); }
template <class T>
std::string field_text(const std::optional<T>& v) {
  return v ? field_text(*v) : "none";
}
std::string field_text(const std::vector<std::string>& list);
std::string field_text(const std::vector<std::pair<std::string, int64_t>>& stages);
// Of roles, or "none".
std::string names_text(const std::vector<RolePlan>& roles);

// Calls differs(key, given, planned), with both values as text, for each field that the plan has otherwise.
template <class E, class Differs>
struct GivenComparison {
  const E &given, &planned;
  Differs& differs;

  void operator()(const NameField<E>&) const {}
  void operator()(const OriginField<E>&) const {}
  void operator()(const ReasonField<E>&) const {}
  void operator()(const StorageField<E>&) const {}
  void operator()(const RequiredText<E>& f) const { compare(f, true); }
  void operator()(const TextField<E>& f) const { compare(f, !(given.*f.at).empty()); }
  template <size_t N>
  void operator()(const WordField<E, N>& f) const {
    compare(f, !(given.*f.at).empty());
  }
  void operator()(const NumberField<E>& f) const { compare(f, given.*f.at != f.open); }
  void operator()(const SetFlag<E>& f) const { compare(f, true); }
  void operator()(const EngineField<E>& f) const { compare(f, (given.*f.at).has_value()); }
  // Where the plan has no such choice, `otherwise` is what happens.
  void operator()(const OptionalText<E>& f) const {
    if (given.*f.at && *(given.*f.at) != (planned.*f.at).value_or("")) tell(f);
  }
  void operator()(const FlagField<E>& f) const {
    if (given.*f.at && *(given.*f.at) != (planned.*f.at).value_or(f.otherwise)) tell(f);
  }
  template <class L>
  void operator()(const LayoutField<E, L>& f) const {
    const auto &own = given.*f.at, &other = planned.*f.at;
    if (own && !(other && own->equivalent(*other))) tell(f);
  }
  // Where nothing issues ops in another order than the program's, the list has none.
  void operator()(const StagesField<E>& f) const {
    auto own = given.*f.at, other = planned.*f.at;
    std::sort(own.begin(), own.end());
    std::sort(other.begin(), other.end());
    if (!own.empty() && own != other) tell(f);
  }
  // Names of a required list are all there are; of another one, some.
  void operator()(const NamesField<E>& f) const {
    const auto &own = given.*f.at, &other = planned.*f.at;
    const bool held = f.required ? own == other : std::all_of(own.begin(), own.end(), [&](const auto& v) {
      return std::find(other.begin(), other.end(), v) != other.end();
    });
    if (!held) tell(f);
  }

 private:
  template <class Field>
  void compare(const Field& f, bool says_something) const {
    if (says_something && !(given.*f.at == planned.*f.at)) tell(f);
  }
  template <class Field>
  void tell(const Field& f) const {
    differs(f.key, field_text(given.*f.at), field_text(planned.*f.at));
  }
};

template <class E, class Differs>
void compare_given(const E& given, const E& planned, Differs&& differs) {
  for_each_field<E>(GivenComparison<E, std::remove_reference_t<Differs>>{given, planned, differs});
}

}  // namespace tilegen::plan
