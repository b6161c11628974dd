// How the sums of blocks that share a loop meet where each block of the cluster does a share of what follows
// it (split_form.h): a reduction that scatters.
//
//   copy acc -> C[by * 128 :+ 128, bx * 128 :+ 128]
//     ->
//   copy acc[0 :+ 128, part * 64 :+ 64] -> acc_own          of the sums of all parts (analysis/sum_shares.h)
//   copy acc_own -> C[by * 128 :+ 128, bx * 128 + part * 64 :+ 64]
//
// requires: a form in which blocks share the loop.
// ensures: the same meaning; every element of what follows is one block's. The statement that takes a share
//   has a path that begins with that of the loop.
// why here: what follows is planned and checked as of narrower tiles.
// refuses: with the reason as text, what follows the loop and is other than loops over elements, copies and
//   fills that go along one dimension of the sums' tile element by element.
#pragma once

#include <string>

#include "analysis/kernel_ops.h"
#include "ir/program.h"

namespace tilegen::expand {

// Of a program or its form. Empty: what follows the loop can be shared. `ops` of the kernel.
std::string share_refusal(const ir::Program& p, int kernel, ir::StmtId loop, int64_t parts,
                          const analysis::KernelOps& ops);

void share_sums(ir::Program& form, int kernel, ir::StmtId loop, ir::VarId part, int64_t parts);

}  // namespace tilegen::expand
