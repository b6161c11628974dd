// Masks: the condition under which a walk masks nothing, and what versions of an op make of it.
#pragma once

#include "lower/gpu/element_nest.h"

namespace tilegen::lower {

// Of the selects in the stores of `body`; extrema are none.
std::vector<ExprId> mask_conditions(const LoweringContext& k, const thread::Block& body);
// The condition, the same for the whole block, under which every select takes its first value and no store
// that depends on a comparison of indices is done; invalid when none can be told.
ExprId unmasked(LoweringContext& k, const Walk& walk, const EmitPoint& emit);
// The condition as one on the number of the iteration, where it can be one.
ExprId iteration_bound(LoweringContext& k, ExprId condition);
// What is known of the mask is put into the stores; those that store an element onto itself, or never, go.
void fold_mask(LoweringContext& k, thread::Block& body);
// One short comparison an element in the stores of `body`.
void shorten_mask(LoweringContext& k, const Nest& nest, const thread::Block& body);

}  // namespace tilegen::lower
