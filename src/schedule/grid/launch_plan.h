// How a kernel follows the one before it on its stream.
//
// requires: nothing of other plans.
// ensures: on targets that can, kernels are dependent (plan::LaunchPlan::dependent); elsewhere there is no
//   plan.
// why here: the code that waits, and the launch that need not, are both told by it.
// refuses: a given dependent launch on a target that has none.
//
// Rule: it always pays. The way from a kernel's end to the first block of the next one, and making barriers
// ready, take up to a microsecond that the end of the kernel before hides; nothing is touched before that one
// has ended, so what kernels see of each other stays as it is.
#pragma once

#include <optional>

#include "ir/program.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

Expected<std::optional<plan::LaunchPlan>> plan_launch(const ir::Kernel& kernel, const target::Target& target,
                                                      const plan::KernelSchedule* given);

}  // namespace tilegen::schedule
