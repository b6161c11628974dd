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
// Refuses limit_memory when the target's shared memory is exceeded, naming the largest tiles.
Expected<std::vector<plan::MemoryPlan>> plan_memory(const ir::Program& p, const infer::KernelOps& ops,
                                                    const std::vector<plan::ValuePlan>& values,
                                                    const std::vector<Scratch>& scratch,
                                                    const target::Target& target, const std::string& kernel);

}  // namespace tilegen::schedule
