// Prefetches what the next iteration of a loop will copy while this one multiplies.
//
// A host thread copies tiles of A and B on chip, multiplies them, and goes on to the next step of k. The
// copies wait for far caches or memory, which products leave idle. Where the body of a serial loop copies
// tiles from global memory and multiplies, the register tiles of the product carry prefetches of the lines
// that the copies of the next iteration read: of the next block's first iteration in the last.
//
// requires: a verified host thread program.
// ensures: only Prefetch statements are added; they never fault, so the last block may name what is not
//   there.
// why here: after lowering, which says where tiles lie; nests of products are not fused with others.
// refuses (silently, it is a derived step): predicated loads outside of a full-tile version, lines that are
//   not read whole, tiles that the loop does not move on, tiles that would drive the present ones out of the
//   second cache, and products with too little work to hide behind.
#pragma once

#include <cstdint>

#include "thread/thread_program.h"

namespace tilegen::lower {

// l2_bytes: of one core; 0: not known.
void prefetch_tiles(thread::ThreadProgram& p, int64_t l2_bytes);

}  // namespace tilegen::lower
