// Accesses of one thread to elements beside each other, written one by one, as wide ones.
//
// requires: the statements of one point, no vector among their loops; vectors of `width` elements are planned
//   or looked for. ensures: loads of a run of at most `width` elements, aligned to their bytes, are one wide
//   load in front of the first that is used, stores of one are one wide store behind the last; every other
//   statement stands where it stood. True where an access of `width` elements was made.
// why here: the place of an element, swizzled or in a tensor, is known to lowering alone; the simulator and
//   every target's code then see vectors as they see those of iterations.
// refuses: runs that a store between them may reach, whose predicates differ between elements, or whose
//   indices are read from memory: they stay as they are.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

bool join_accesses(LoweringContext& k, int64_t width, thread::Block& body, const std::string& origin);

}  // namespace tilegen::lower
