// How many partial results a thread keeps while it reduces its own elements.
//
// requires: layouts, iterations and roles of the kernel.
// ensures: OpPlan::chains of reductions in registers. Two where neither needs to wait for the other and
//   nothing else fills the time: a maximum or minimum, found in any order, of many elements, in kernels with
//   a producer, whose few warps wait for each step. Elsewhere one: sums keep their order, and other warps
//   hide what a thread waits for.
// why here: it needs the elements that a thread has.
// refuses: nothing.
#pragma once

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"

namespace tilegen::schedule {

void plan_reduction_chains(const ir::Program& p, const analysis::KernelOps& ops,
                           const plan::KernelSchedule* given, plan::KernelSchedule& s);

}  // namespace tilegen::schedule
