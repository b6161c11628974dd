#include "infer/fragment_table.h"

#include "analysis/index_links.h"
#include "analysis/projection.h"

namespace tilegen::infer {

using analysis::KernelOp;
using analysis::KernelOps;
using analysis::OpId;
using analysis::ValueId;

namespace {

size_t hash_of(const layout::Fragment& f) {
  uint64_t h = static_cast<uint64_t>(f.threads());
  const auto mix = [&h](int64_t x) {
    h = (h ^ static_cast<uint64_t>(x)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
  };
  for (int64_t extent : f.shape()) mix(extent);
  for (const layout::Digit& d : f.map().digits()) {
    mix(d.dim);
    mix(d.extent);
    mix(d.weight);
    mix(d.output);
    mix(d.stride);
  }
  return h;
}

uint64_t key(int kind, FormId form) { return static_cast<uint64_t>(kind) << 32 | form.value; }

}  // namespace

FragmentTable::FragmentTable(const KernelOps& ops, int64_t lanes)
    : ops_(ops), reach_{lanes}, kinds_(ops.ops.size()) {
  using Numbers = std::vector<int64_t>;
  using Kind = std::tuple<Numbers, Numbers, std::vector<int>, Numbers, Numbers>;
  std::map<Kind, int> kinds;
  for (OpId i : ops.ops.ids())
    for (size_t k = 0; k < ops.ops[i].view.accesses.size(); ++k) {
      const ops::ElementAccess& a = ops.ops[i].view.accesses[k];
      const ValueId v = ops.ops[i].accesses[k].value;
      Kind kind{ops.ops[i].view.extents, v.valid() ? ops.values[v].shape : Numbers(), a.dim_of, a.offset, {}};
      for (size_t d = 0; d < a.terms.size(); ++d)
        for (const ops::IndexTerm& t : a.terms[d])
          std::get<4>(kind).insert(
              std::get<4>(kind).end(),
              {static_cast<int64_t>(d), t.dim, t.divisor, t.modulus, t.weight, t.mirrored ? 1 : 0, t.turn});
      std::get<4>(kind).insert(std::get<4>(kind).end(), {a.write ? 1 : 0, a.of_region ? 1 : 0});
      kinds_[i].push_back(kinds.emplace(std::move(kind), static_cast<int>(kinds.size())).first->second);
    }
}

FormId FragmentTable::id_of(const layout::Fragment& f) {
  const size_t hash = hash_of(f);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (at(it->second) == f) return it->second;
  const FormId fresh(fragments_.size());
  fragments_.push_back(f);
  by_hash_.emplace(hash, fresh);
  return fresh;
}

FormId FragmentTable::projected(FormId iteration, OpId op, size_t access) {
  const auto [it, fresh] = projected_.try_emplace(key(kinds_[op][access], iteration));
  if (!fresh) return it->second;
  const KernelOp& o = ops_.ops[op];
  const ops::ElementAccess& access_at = o.view.accesses[access];
  const std::vector<int64_t>& shape = ops_.values[o.accesses[access].value].shape;
  // Copies of a thread could hold what lies beside the element: it is left to another root.
  if (at(iteration).replicas() > 1)
    if (const auto links = analysis::index_links(access_at, o.view.extents, shape);
        links && !links->names_all())
      return it->second = FormId();
  const auto f = analysis::project(at(iteration), access_at, shape, reach_);
  return it->second = f ? id_of(*f) : FormId();
}

bool FragmentTable::keeps_order(OpId op, size_t access) {
  const auto [it, fresh] = keeps_order_.try_emplace(kinds_[op][access]);
  if (!fresh) return it->second;
  const KernelOp& o = ops_.ops[op];
  const auto links = analysis::index_links(o.view.accesses[access], o.view.extents,
                                           ops_.values[o.accesses[access].value].shape);
  return it->second = links && links->keeps_order();
}

bool FragmentTable::covers(FormId held, FormId iteration, OpId op, size_t access) {
  const auto [it, fresh] = covers_.try_emplace({kinds_[op][access], held, iteration});
  if (fresh) it->second = analysis::covers(at(held), at(iteration), ops_.ops[op].view.accesses[access]);
  return it->second;
}

FormId FragmentTable::pulled_back(FormId held, OpId op, size_t access) {
  const auto [it, fresh] = pulled_back_.try_emplace(key(kinds_[op][access], held));
  if (!fresh) return it->second;
  const KernelOp& o = ops_.ops[op];
  const auto f = analysis::pull_back(at(held), o.view.accesses[access], o.view.extents, reach_);
  return it->second = f ? id_of(*f) : FormId();
}

}  // namespace tilegen::infer
