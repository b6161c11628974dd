// A schedule that the caller gives: what it may name, whether it says everything, and taking it as it is.
#pragma once

#include <map>

#include "infer/infer_layouts.h"
#include "plan/schedule.h"

namespace tilegen::schedule {

// A given schedule may name only what the kernel has.
Checked check_names(const plan::KernelSchedule& given, const ir::Program& p, int kernel, const infer::KernelOps& ops);

// Every op and every value is said.
bool is_complete(const plan::KernelSchedule& given, const infer::KernelOps& ops);

// A full schedule is taken as it is, once it is seen to fit: inference is not asked.
Expected<infer::InferResult> replay(const ir::Program& p, const infer::KernelOps& ops,
                                    const std::map<size_t, ops::GemmPlan>& gemms, const plan::KernelSchedule& given,
                                    int64_t threads);

}  // namespace tilegen::schedule
