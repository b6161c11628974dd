// What a producer begins before the kernel in front of this one on its stream has ended.
//
// requires: the kernel's launch, roles, pipelines and engines are planned.
// ensures: `preamble` of the producers' copies whose tensors are constant (ir::Buffer); a note says why such
//   a copy waits. As asked where the given schedule says.
// why here: it asks which loop a copy fills tiles for, who issues it and how blocks walk the grid.
// refuses: a given preamble of another copy.
//
// Rule: it pays wherever it may be, but for blocks whose sums meet in a workspace, and for loops whose
// producer divides by sizes to tell where it reads. A kernel of few microseconds begins with the latency of
// memory; 16x2560x2560 takes 0.95 and 32x6144x4096 0.88 of the time in a row of launches on an H200. Loads of
// the next launch delay the meeting: 64x64x65536 in 32 parts takes 1.04 times as long
// (bench/gpu/few_blocks.py). A convolution of any size, whose loop is over places and channels, takes 1.04 to
// 1.10 times as long: the producer's code has the quotients twice (bench/gpu/conv2d.py, 32x56x56, 128
// channels).
#pragma once

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"

namespace tilegen::schedule {

Checked plan_preamble(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                      const plan::KernelSchedule* given, plan::KernelSchedule& s);

}  // namespace tilegen::schedule
