// The same network over keys in fragments: a step reads the other key at an index of flipped digits, which
// planning finds in the thread's own registers or by a shuffle of its warp.
//
//   sort x -> y, at {axis = 1}  ->  parallel i, j in 16, 64 { keys[i, j] = ... of x[i, j] }
//                                   parallel i, h, r, q in 16, 8, 2, 4 {      ; steps of the distance 4
//                                     next_keys[i, (h * 2 + r) * 4 + q] =     ; front: r == 0
//                                       select((other < own) == front, other, own)
//                                   }         ; own: keys[i, (h * 2 + r) * 4 + q]
//                                   ...       ; other: keys[i, (h * 2 + 1 - r) * 4 + q], mirrored + 3 - q
//                                   y and at, out of the keys
//
// Steps that go further than the keys of a warp read a shared tile that one loop in front fills. Of the first
// k elements runs of at least k are sorted, as above. Then the tile is halved as long as threads have several
// short runs, the lower of each two; and then each run becomes the lower one of itself and another, so that
// all of them come to hold the first elements.
//
// requires: what add_sort has checked.
// why here: on targets without lanes these are loops over keys in memory, too.
#pragma once

#include "ir/sort.h"

namespace tilegen::ir {

// A key is one number, fragments of keys fill the threads of the kernel evenly, as shuffles ask for, and a
// thread has no more of them than a network written out is worth.
bool lanes_hold_keys(const Program& p, const Sort& what);
void sort_in_lanes(Program& p, const Sort& what, const SourceLocation& location, Block& block);

}  // namespace tilegen::ir
