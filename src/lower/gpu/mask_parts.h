// Masks that warps know: a thread's points taken in parts, each of which has three forms. Where the lanes of
// a warp all lie on one side of a condition on indices, as most do in select(j <= i, exp(a[i] - a[j]), 0)
// over the diagonal tile of a product, the warp takes the form in which the condition is known, and what it
// would discard is not computed.
#pragma once

#include "lower/gpu/element_nest.h"
#include "plan/access_facts.h"

namespace tilegen::lower {

// The walk in `parts` parts, vectors of `width` elements. `legal` is false where parts can not be: a store to
// memory, a barrier between elements, or no condition that warps would know.
Attempt walk_in_parts(LoweringContext& k, const Walk& walk, int64_t parts, int64_t width,
                      const EmitPoint& emit);
// What parts of the walk would come to; nothing where there can be none.
std::optional<plan::MaskParts> find_mask_parts(LoweringContext& k, const Walk& walk, int64_t width,
                                               const EmitPoint& emit);

}  // namespace tilegen::lower
