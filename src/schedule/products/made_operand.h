// Operands of products that threads make in registers beside the product.
//
// requires: a product of the program. ensures: the operations that the parallel loops of its block, which run
//   as often, take for one element of the operand; 0 where nothing there makes it.
// why here: each warp that multiplies such an element makes it for itself, so it counts in splits over warps.
// refuses: nothing.
#pragma once

#include "ir/program.h"

namespace tilegen::schedule {

int64_t operations_of_element(const ir::Program& p, const ir::TileOp& product, ir::BufferId operand);

}  // namespace tilegen::schedule
