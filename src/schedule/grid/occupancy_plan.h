// How many blocks of a multiprocessor a kernel's registers should allow for (CUDA: launch bounds).
//
// requires: layouts, engines and conversions of the kernel.
// ensures: LaunchPlan::min_blocks of kernels for GPUs. A kernel without matrix instructions waits for
//   memory, which warps hide: it should hold its values and a fixed number of registers besides, and as many
//   blocks as that leaves room for. The driver's compiler would otherwise spend registers on instructions in
//   flight, which more warps hide as well.
//   Kernels with matrix instructions of waves that issue in order (AMD) ask for two, where they fit: what one
//   does between products the other's hide.
// why here: all values that threads hold are known.
// refuses: nothing; kernels with matrix instructions, whose accumulators decide for themselves, and kernels
//   whose threads hold many values, which have enough to do at once, keep one block.
#pragma once

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

// The registers that a thread may have at most, where they are given. Refuses: targets whose code cannot be
// told, and roles, which have registers of their own.
Checked plan_most_registers(const ir::Kernel& kernel, const target::Target& t,
                            const plan::KernelSchedule* given, plan::KernelSchedule& s);

void plan_min_blocks(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                     const plan::KernelSchedule* given, plan::KernelSchedule& s);

}  // namespace tilegen::schedule
