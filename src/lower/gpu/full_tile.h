// Bounds of an op's accesses, taken together for the whole block.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// Stores that depend on a condition of the user's: a bound like those of tensors where it compares indices.
void record_condition(LoweringContext& k, ExprId condition);
// Condition, the same for the whole block, under which every recorded bound holds; invalid when none can be
// told.
ExprId interior_of_bounds(LoweringContext& k, const Nest& nest);

}  // namespace tilegen::lower
