// Fragments by number, and what was derived from them: one layout meets the same kind of access in many ops
// of a kernel, and every root that is tried for a free value asks again.
#pragma once

#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analysis/kernel_ops.h"
#include "layout/fragment.h"

namespace tilegen::infer {

class FragmentTable {
 public:
  explicit FragmentTable(const analysis::KernelOps& ops);

  // Equal fragments have one number.
  int number(const layout::Fragment& f);
  const layout::Fragment& at(int number) const { return fragments_[static_cast<size_t>(number)]; }

  // project and pull_back (infer/projection.h) of element access `access` of op `op`; -1 where they give
  // nothing.
  int projected(int iteration, analysis::OpId op, size_t access);
  int pulled_back(int held, analysis::OpId op, size_t access);

 private:
  const analysis::KernelOps& ops_;
  std::deque<layout::Fragment> fragments_;
  std::unordered_multimap<size_t, int> by_hash_;
  // by op and access: accesses of one kind walk like dimensions of like buffers
  IdVector<analysis::OpId, std::vector<int>> kinds_;
  std::unordered_map<uint64_t, int> projected_, pulled_back_;  // by kind and number of the fragment
};

}  // namespace tilegen::infer
