// Zero fills that products make needless.
//
//   fill acc, 0                                     k = 0: acc = A * B      (the fill only where n is 0)
//   pipelined k in 0..n { gemm A, B -> acc }   ->   k in 1..n: acc += A * B
//
// requires: engines, pipelines and roles of the kernel.
// ensures: OpPlan::elided of each fill of all of a product's accumulators with zeros, before that
//   product of warpgroups, or of a loop that does nothing else but it, on tiles of a producer. The loop's
//   first iteration is then peeled, and its product overwrites.
// why here: the engines tell which products can overwrite.
// refuses: nothing; any other fill is done as it stands.
#pragma once

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"

namespace tilegen::schedule {

void plan_zero_init(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                    const plan::KernelSchedule* given, plan::KernelSchedule& s);

}  // namespace tilegen::schedule
