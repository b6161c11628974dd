// What follows a loop that leaves sums, cut into equal shares along one dimension of the sums' tile.
//
//   copy acc -> C[by * 128 :+ 128, bx * 128 :+ 128]        acc is cut along its columns, C's region too
//   parallel i, j in 128, 128 { acc[i, j] = .. }           along j
//
// requires: a program, or a form of it, and a loop that is not refused by split_loop.h.
// ensures: where nothing is refused, each share writes elements that no other one writes or reads.
// why here: blocks that share the loop can each do one of the shares (expand/share_form.h).
// refuses: with the reason as text, other statements than loops over elements, copies and fills; those that
//   read across elements; atomic stores; tiles that the parts do not divide.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/kernel_ops.h"
#include "ir/program.h"

namespace tilegen::analysis {

// A dimension of each tile that is cut, the variable of a loop that goes along it, and the operand and
// dimension of a copy's region that is none of these tiles'.
struct EpilogueCut {
  std::vector<ir::BufferId> sums;
  std::map<ir::BufferId, int> tiles;  // the sums among them
  std::map<ir::StmtId, ir::VarId> loops;
  std::map<ir::StmtId, std::pair<int, int>> regions;
  int64_t width = 0;  // of a share
  std::string refusal;
};
// `ops` where they have been collected, else null.
EpilogueCut epilogue_cut(const ir::Program& p, int kernel, ir::StmtId loop, int64_t parts,
                         const KernelOps* ops = nullptr);

}  // namespace tilegen::analysis
