// Barriers between the threads of a block, where and only where one thread's accesses to shared memory or to
// a tensor meet another's.
//
// requires: a thread program with no barrier for hazards; async copies committed, and waited for where
// lowering knows their first use. A condition or loop extent that reads no thread variable is the same for
// all threads of a block. ensures: between two accesses of different threads to one element, of which one
// writes, every path has a block barrier; after an async copy also a wait of the copying thread. Barriers
// stand where all threads come by. why here: after everything that moves statements; exact indices are
// known, and what the indices do not show (overlapping slices of the arena) is in the program. refuses:
// internal_error for a hazard within control flow that differs between threads.
//
// Straight code gets the fewest barriers (each stands as late as possible); a hazard between a loop and what
// stands around it gets its barrier outside the loop. Loop-carried hazards are found by walking a body as
// consecutive iterations. Where an async copy may be unfinished and no wait is provably in between, a wait
// for everything is planted too.
#pragma once

#include "support/diagnostic.h"
#include "thread/thread_program.h"

namespace tilegen::sync {

struct Planting {
  // The program awaits its asynchronous copies itself, in groups that a further wait would not leave as it
  // counts them. No wait is planted: refuses misplaced_statement for what meets a copy that may be
  // unfinished.
  bool own_waits = false;
  // The program says what each thread does: warps that alone have to do with each other meet at a barrier of
  // theirs, where the machine has such, and barriers that the program names order them. Not in roles.
  bool by_warps = false;
};
Checked plant_barriers(thread::ThreadProgram& p, const Planting& how = {});

}  // namespace tilegen::sync
