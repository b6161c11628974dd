// Points of a grid at which a block stores nothing, as beyond the end of a short sequence beside longer ones.
//
// requires: a kernel of a valid program, its ops.
// ensures: at a point where none of the tests passes, no element of a tensor is written. (Where one passes
//   there may still be none.) Tests compare what depends on block indices, dims, scalars and tensors that
//   nobody writes.
// why here: whoever hands out points can ask this without a block's other work.
#pragma once

#include <map>
#include <vector>

#include "analysis/kernel_ops.h"
#include "ir/program.h"

namespace tilegen::analysis {

// a < b, or a <= b; variables of loops inside the block count as the number that makes it most likely.
struct StoreComparison {
  ir::ExprId a, b;
  bool or_equal = false;
  std::map<ir::VarId, int64_t> in_a, in_b;
};
// Passes where all comparisons hold.
using StoreTest = std::vector<StoreComparison>;

// One test for each statement that writes a tensor; empty when one of them may write at every point.
std::vector<StoreTest> store_tests(const ir::Program& p, const ir::Kernel& kernel, const KernelOps& ops);

}  // namespace tilegen::analysis
