// Sides of a block of threads that wait for each other, in an order in which each finds what it waits for.
//
//   if w == 4 { serial k .. {                            serial k .. {
//     mbarrier_wait empty; ..; mbarrier_arrive full } }    if w == 4 { mbarrier_wait empty; .. }
//   else { serial k .. {                             ->    if w < 4 { mbarrier_wait full; .. }
//     mbarrier_wait full; ..; mbarrier_arrive empty } }  }
//
//   if w < 4 { a = ..; barrier_sync met; .. = b }        if w < 4 { a = .. }   if w >= 4 { b = .. }
//   else { b = ..; barrier_sync met; .. = a }        ->  barrier_sync met      and what is behind it
//
// Statements take effect in the order in which they stand, and a wait finds its phase complete. Where one
// does not (ir/side_phases.h), statements of other threads that stand behind it go on first, as they do where
// warps run side by side: each thread's own keep their order. Serial loops of both sides with the same bounds
// become one, whose iterations both sides have, and meetings at one barrier one meeting.
//
// requires: parts of blocks of threads (ir/draft_threads.h). ensures: a program of which no wait is found
// incomplete is as it was. why here: executors, checks and planning know one form.
// refuses: nothing. What cannot be woven keeps its order, in which check/barrier_check.cpp refuses it: loops
// of other bounds, threads that nothing but memory tells, and what stands in front of a loop and touches what
// the other side's loop does.
#pragma once

#include <functional>

#include "ir/program.h"

namespace tilegen::ir {

// `is_own`: each thread touches its own elements of the tile alone.
void weave_sides(Program& p, const std::function<bool(BufferId)>& is_own);

}  // namespace tilegen::ir
