// Drops stores to on-chip memory that nothing reads any more, handing their value to the readers in the same
// iteration.
//
// requires: a verified host thread program, loops fused. Blocks start with undefined on-chip memory.
// ensures: the same results; a tile that only ferries a value from one fused step to the next is never
// written. why here: after fusion, which brings writer and reader into one iteration; code generation cannot
// see that the arena is
//   dead at a block's end.
// refuses (silently, it is a derived step): stores outside perfect nests at the top of the kernel, readers at
// another index.
#pragma once

#include "thread/thread_program.h"

namespace tilegen::lower {

void forward_stores(thread::ThreadProgram& p);

}  // namespace tilegen::lower
