// Where the on-chip values of a kernel lie: offsets in the block's arena (host: every value; GPU: the shared
// ones).
#pragma once

#include "infer/kernel_ops.h"
#include "plan/schedule.h"
#include "schedule/exchange_plan.h"
#include "target/target.h"

namespace tilegen::schedule {

// Bytes of one slot of every value; 0 for values that live in registers.
std::vector<int64_t> value_bytes(const ir::Program& p, const infer::KernelOps& ops,
                                 const std::vector<plan::ValuePlan>& values, const target::Target& target);

// Scratch slices share the bytes behind the values: a slice is used by one statement at a time.
// Offsets of all values and scratch slices. On GPUs what is not alive at the same time may lie in the same
// place.
std::vector<plan::MemoryPlan> place_values(const ir::Program& p, int kernel, const infer::KernelOps& ops,
                                           const std::vector<plan::ValuePlan>& values,
                                           const std::vector<Scratch>& scratch, const target::Target& target);
int64_t arena_bytes(const std::vector<plan::MemoryPlan>& plan);

// The same; refuses limit_memory when the target's shared memory is exceeded, naming the largest tile.
Expected<std::vector<plan::MemoryPlan>> plan_memory(const ir::Program& p, int kernel,
                                                    const infer::KernelOps& ops,
                                                    const std::vector<plan::ValuePlan>& values,
                                                    const std::vector<Scratch>& scratch,
                                                    const target::Target& target);

}  // namespace tilegen::schedule
