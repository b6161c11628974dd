// Fragments by id, and what was derived from them: one layout meets the same kind of access in many ops
// of a kernel, and every root that is tried for a free value asks again.
#pragma once

#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analysis/kernel_ops.h"
#include "analysis/projection.h"
#include "layout/fragment.h"

namespace tilegen::infer {

using FormId = Id<struct FormTag>;  // of a FragmentTable

class FragmentTable {
 public:
  FragmentTable(const analysis::KernelOps& ops, int64_t lanes);  // of a warp

  // Equal fragments have one id.
  FormId id_of(const layout::Fragment& f);
  const layout::Fragment& at(FormId form) const { return fragments_[form.index()]; }

  // project and pull_back (analysis/projection.h), within the reach of lanes, of access `access` of op `op`;
  // none where they give nothing.
  FormId projected(FormId iteration, analysis::OpId op, size_t access);
  FormId pulled_back(FormId held, analysis::OpId op, size_t access);
  // The access names each element of its value once, in the order of the iterations' digits.
  bool keeps_order(analysis::OpId op, size_t access);
  // Each thread of the iteration holds what its points name (analysis/projection.h).
  bool covers(FormId held, FormId iteration, analysis::OpId op, size_t access);

 private:
  const analysis::KernelOps& ops_;
  const analysis::Reach reach_;
  std::deque<layout::Fragment> fragments_;
  std::unordered_multimap<size_t, FormId> by_hash_;
  // by op and access: accesses of one kind walk like dimensions of like buffers
  IdVector<analysis::OpId, std::vector<int>> kinds_;
  std::unordered_map<uint64_t, FormId> projected_, pulled_back_;  // by kind and form
  std::unordered_map<int, bool> keeps_order_;                     // by kind
  std::map<std::tuple<int, FormId, FormId>, bool> covers_;        // by kind, held and iteration
};

}  // namespace tilegen::infer
