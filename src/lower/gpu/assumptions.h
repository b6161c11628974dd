// What the schedule has the code rely on, as guards of the kernel.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// requires: parameters are declared.
void declare_assumptions(LoweringContext& k);

// Elements of a contiguous tensor with so many rows more, an extent of 0 counted as 1: none of its extents is
// more then. Invalid: it has strides.
ExprId reach_of(LoweringContext& k, MemoryId tensor, int64_t rows_beyond);

// Sizes of tensors without an access that the hardware is to bound are no matter: of finished code.
void drop_unused_assumptions(LoweringContext& k);

}  // namespace tilegen::lower
