// The last step of planning a kernel: how its threads access memory, which the facts of its lowering decide.
// A plan is complete after it.
//
// requires: a plan by schedule::plan_kernel, expanded. ensures: plan.ops have vectors and versions that
// lowering takes as they are; `scheduled` is the expansion of the plan as it is then.
// refuses: what plan_accesses, and lowering where it finds the facts, refuse.
#pragma once

#include "expand/scheduled_kernel.h"
#include "ir/program.h"
#include "schedule/plan_program.h"
#include "target/target.h"

namespace tilegen::driver {

// `given`: decisions of the caller's, or null; `must_hold`: a version that they are not replaced in.
// `expanded_again`, where asked for: `scheduled` is another than it was, and not checked. `for_estimate`: of
// the plan no more is decided than an estimate sees.
Checked decide_accesses(const ir::Program& program, const target::Target& target,
                        schedule::Assumptions allowed, const plan::KernelSchedule* given, bool must_hold,
                        plan::KernelSchedule& plan, expand::ScheduledKernel& scheduled,
                        bool* expanded_again = nullptr, bool for_estimate = false);

}  // namespace tilegen::driver
