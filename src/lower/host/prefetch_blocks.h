// Prefetches what the next block will read while this one computes.
//
// A host thread runs blocks one after another; a block that reads a tile, works on it and writes it leaves
// the memory idle while it works. Where a nest at the top of the kernel copies a global tile on chip, the
// costliest later nest over the same points carries prefetches of the same tile one block further along the
// fastest grid dimension.
//
// requires: a verified host thread program, loops fused.
// ensures: only Prefetch statements are added; they never fault, so the last block may name what is not
// there. why here: after fusion, which decides what the nests are. refuses (silently, it is a derived step):
// predicated loads, kernels without such a pair of nests.
#pragma once

#include "thread/thread_program.h"

namespace tilegen::lower {

void prefetch_blocks(thread::ThreadProgram& p);

}  // namespace tilegen::lower
