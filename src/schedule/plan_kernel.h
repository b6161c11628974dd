// The plan of one kernel; what schedule/plan_program.h says of a program. Read it in plan_kernel.cpp from
// plan() down.
#pragma once

#include "analysis/kernel_ops.h"
#include "schedule/plan_program.h"

namespace tilegen::schedule {

Expected<plan::KernelSchedule> plan_kernel(const ir::Program& p, int kernel, const target::Target& t,
                                           const plan::KernelSchedule* given, const PlanOptions& options);

}  // namespace tilegen::schedule
