// Program + Schedule -> scheduled program.
//
// requires: a checked program; a complete KernelSchedule that planning made or accepted for the target.
// ensures: the statements of every role do what the schedule says, in its order; a wait stands where a result
// or a slot is needed first; operations are in the versions that their plans have. Nothing is decided that
// the schedule leaves open.
// why here: after planning, which needs the un-expanded program; before lowering, which maps operations
// to instructions and knows nothing of pipelines.
// refuses (schedule_illegal): a pipeline that products and threads use side by side, or nobody does.
#pragma once

#include "expand/scheduled_kernel.h"

namespace tilegen::expand {

// `ops` of the kernel where they have been collected, else null.
Expected<ScheduledKernel> expand_kernel(const ir::Program& p, int kernel,
                                        const plan::KernelSchedule& schedule, const target::Target& target,
                                        std::shared_ptr<const analysis::KernelOps> ops = nullptr);

}  // namespace tilegen::expand
