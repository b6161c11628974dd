// Asynchronous copies whose groups the program commits and awaits itself (ir/copy_groups.h).
#pragma once

#include "ir/annotations.h"
#include "ir/copy_groups.h"
#include "target/target.h"

namespace tilegen::analysis {

// The machine counts groups of each thread's copies. Elsewhere they are done where they stand.
inline bool has_copy_groups(const target::Target& t) { return t.async_copy() && !t.copies_in_lane_order; }

// Nothing else of the kernel copies asynchronously then: its groups are those of the program.
inline bool counts_own_groups(const ir::Program& p, int kernel) {
  return !ir::first_copy_word(p, p.kernels[static_cast<size_t>(kernel)]).empty();
}

}  // namespace tilegen::analysis
