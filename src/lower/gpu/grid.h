// The grid of a GPU kernel: one linear block index; the program's indices are expressions of it, put in at
// the end.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// requires: parameters and assumptions are declared.
void declare_linear_grid(LoweringContext& k);
void replace_block_indices(LoweringContext& k, thread::Block& body);
// Of the block in its cluster.
ExprId cluster_rank(LoweringContext& k);
// Points of the grid that persistent blocks walk.
ExprId points(LoweringContext& k);

}  // namespace tilegen::lower
