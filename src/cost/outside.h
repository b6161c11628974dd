// How much of what the copy engine moves lies outside of tensors: it fills that part of a tile with zeros,
// more slowly than it loads.
//
// requires: sizes; block indices are set meanwhile. ensures: the mean over all blocks, of offsets that follow
//   from one block index and sizes; others, such as those of loops, count as inside.
// why here: a grid's last tiles depend on sizes, which plans do not. refuses: nothing.
#pragma once

#include "cost/op_work.h"

namespace tilegen::cost {

// Of the copy engine's loads: zeros count as filled instead of read.
void count_filled(const PlannedKernel& k, const ir::Kernel& kernel, SizedProgram& sizes,
                  std::vector<OpWork>& works);

}  // namespace tilegen::cost
