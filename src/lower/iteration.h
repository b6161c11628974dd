// Iteration layouts of a block of one thread as loop nests, and the loops of nests of any block.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// `vector`: elements of the innermost loop's vectors, where the unit digit has them.
Nest make_nest(LoweringContext& k, const layout::Fragment& iteration, int64_t vector,
               const std::vector<int64_t>& extents);
// Wraps `body` in the loops of the nest [first, last).
thread::Block wrap(LoweringContext& k, const Nest& nest, size_t first, size_t last, thread::Block body,
                   const std::string& origin);

}  // namespace tilegen::lower
