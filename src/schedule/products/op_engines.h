// Engines of the ops of a kernel and the threads of its blocks.
//
// requires: collected ops; which products cannot be done by warpgroups (tensor_copy_plan.h).
// ensures: an engine per gemm that the threads can run; copies are asynchronous where the target and their
// vectors allow it; a given engine, atom or number of threads is taken as it is.
// refuses: no_atom, schedule_illegal, target_unsupported.
#pragma once

#include "schedule/transport/tensor_copy_plan.h"

namespace tilegen::schedule {

using GemmPlans = std::map<analysis::OpId, plan::GemmPlan>;

// `by_each`: products that each warpgroup makes whole, where it can.
Expected<GemmPlans> plan_gemms(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                               int64_t threads, const plan::KernelSchedule* given, const Refusals& refused,
                               const std::set<analysis::OpId>& by_each = {});

Expected<int64_t> plan_threads(const ir::Program& p, const ir::Kernel& k, const analysis::KernelOps& ops,
                               const target::Target& t, const plan::KernelSchedule* given,
                               const Refusals& refused);

// Copies between global and shared memory: asynchronous where the target can and 4, 8 or 16 bytes move at
// once.
void plan_copy_engines(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                       const target::Target& t, const plan::KernelSchedule* given, infer::InferResult& r);

// On the host, results that the program never reads again need not displace the caches' contents.
void plan_streaming(const std::set<ir::BufferId>& read, const analysis::KernelOps& ops,
                    const target::Target& t, const plan::KernelSchedule* given, infer::InferResult& r);

}  // namespace tilegen::schedule
