// Shares of the sums of a split loop: each of the blocks that share its iterations takes one part of the
// tile, in which it does what follows the loop.
//
//   for ko { .. gemm As, Bs, acc }                          acc_r: a part of the sums
//   copy acc[0 :+ 128, part * 64 :+ 64] -> acc_own          the sum of all parts, of these columns
//   copy acc_own -> C[.., bx * 128 + part * 64 :+ 64]
//
// requires: a form of expand/share_form.h, whose statements alone know the index of the part.
// ensures: of a layout that can be cut the registers of a share are the same thread's, in the same order.
// why here: inference lays the share out, expansion, lowering and the cost model ask which ops take one.
// refuses: layouts in which the shares of a dimension are no registers of each thread.
#pragma once

#include <optional>
#include <vector>

#include "analysis/kernel_ops.h"

namespace tilegen::analysis {

struct SumShare {
  OpId op;  // the copy that takes it
  ValueId sum, own;
  int dim = 0;  // that is cut
  int64_t parts = 1;
};
// The op takes this block's share of a sum.
bool takes_share(const ir::Program& p, const ir::Kernel& kernel, ir::StmtId op);
std::vector<SumShare> sum_shares(const ir::Program& p, int kernel, const KernelOps& ops);

// Share r of a thread's registers is `run` of every `step`, from r * run on.
struct CutFragment {
  layout::Fragment own;  // layout of each share
  int64_t run = 0, step = 0;
};
std::optional<CutFragment> cut_fragment(const layout::Fragment& whole, int dim, int64_t parts);

}  // namespace tilegen::analysis
