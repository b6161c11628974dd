// Leaves out nests that only keep what is there: a mask that hides nothing from a tile.
//
//   serial i { vectorized v { S[i, v] = select(kb * 128 + v < keys, S[i, v], -inf) } }
//   if not kb * 128 + 127 < keys { .. }
//
// requires: a verified host thread program, loops fused and stores forwarded.
// ensures: the same contents of memory; the nest runs where some of its selects may take the other value.
// why here: fusion may have given the nest other stores, which must run.
// refuses (silently, it is a derived step): conditions that read memory or are no comparisons of integers
//   linear in the loops' variables, elements that are not the store's own.
#pragma once

#include "thread/thread_program.h"

namespace tilegen::lower {

void skip_selects(thread::ThreadProgram& p);

}  // namespace tilegen::lower
