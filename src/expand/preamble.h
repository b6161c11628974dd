// What a producer does before the kernel in front of this one on its stream has ended (programmatic dependent
// launch): copies of constant tensors for a loop's first iterations.
//
// requires: roles as expanded; OpPlan::preamble of copies that schedule/grid/preamble_plan allows.
// ensures: a role with such copies begins with their Preamble, waits for the grid in front, and does them in
//   the loop only behind the preamble; all other roles begin with the wait. Uses of pipelines keep their
//   numbers.
// why here: it moves whole statements of a producer's list; nothing of what consumers wait for changes.
#pragma once

#include "expand/scheduled_kernel.h"

namespace tilegen::expand {

void add_preamble(ScheduledKernel& k);

}  // namespace tilegen::expand
