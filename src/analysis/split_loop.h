// Loops whose iterations blocks may share: all that is left of one when it ends is sums.
//
//   fill acc, 0                          block r of n: acc_r = sum of its iterations
//   for ko { copy ..; gemm As, Bs, acc } ->    first: acc = acc_0 + acc_1 + ..
//   copy acc -> C                              first: copy acc -> C
//
// requires: collected ops of the kernel.
// ensures: a loop of the kernel's body that is not refused writes no tensor, and an iteration reads nothing
//   that another one leaves but `sums`, which products and element-wise work add to there, and nothing else
//   touches, and which are 0 when the loop begins. Nothing before it writes a tensor.
// why here: planning asks whether, expansion and lowering ask which sums.
// refuses: with the reason as text, any other loop.
#pragma once

#include <string>
#include <vector>

#include "analysis/kernel_ops.h"

namespace tilegen::analysis {

struct SplitLoop {
  std::vector<ValueId> sums;  // in the order of KernelOps::values
  std::string refusal;        // empty: blocks may share the iterations
};
SplitLoop split_loop(const ir::Program& p, int kernel, const KernelOps& ops, ir::StmtId loop);

// Of so many blocks that each have `registers` of a thread's sums: those whose sums are asked for before the
// first are added, since what another block has comes hundreds of cycles later. Divides their number.
int64_t parts_at_once(int64_t registers, int64_t others);

// Of a thread's `registers` of sums of which so many blocks have a part each: those that each block sums, as
// many as divide `registers`, so that the first does not read what all others have. 0: it sums them all,
// which takes one meeting less.
int64_t share_of_sums(int64_t registers, int64_t blocks);
// How often all blocks meet until the first has the sums.
int64_t meetings_for_sums(int64_t blocks);

}  // namespace tilegen::analysis
