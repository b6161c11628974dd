// Loops whose product has its first operands in registers when an iteration begins.
//
// requires: engines, layouts, slots and stages of the kernel.
// ensures: LoopPlan::register_prefetch of loops of asynchronous copies, or of copies through registers to
//   tiles of two slots and more, that do nothing else but one product of matrix instructions, on two tiles in
//   shared memory that run equally far ahead, with an even number of
//   steps along k: the last step of an iteration then reads none of the registers that the first step of the
//   next one is loaded into, and its instructions hide the wait, the barrier and these loads. Not where the
//   first step then follows the last one's on a warp's only sum, and the instruction is not waited for there.
// why here: stages tell what runs ahead.
// refuses, with a note: such loops of an odd number of steps, of operands or sums that are converted, of
//   tiles that run ahead by several distances, or of such a sum.
#pragma once

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

void plan_register_prefetch(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                            const target::Target& t, const plan::KernelSchedule* given,
                            plan::KernelSchedule& s);

}  // namespace tilegen::schedule
