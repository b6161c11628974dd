// What caches do with lines of the tensors that operations read and write, where a schedule says so: results
// do not depend on it, and nothing is planned by itself.
//
// requires: the ops of `s` with their engines. ensures: OpPlan::cache as given. why here: when engines are
// decided, since their accesses are told it in different ways. refuses: schedule_illegal on targets without
// such accesses, for ops that access no tensor or combine elements of one, and where two ops of the kernel
// read, or write, one tensor and do not say the same of it: a tensor's lines are all treated alike.
#pragma once

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilegen::schedule {

// Whether code for the target is told of caches and of registers: that of sm_80 and newer. AMD's asynchronous
// copies, which go in the order of lanes, tell nothing of either.
inline bool takes_hints(const target::Target& t) { return t.async_copy() && !t.copies_in_lane_order; }

Checked plan_caching(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                     const plan::KernelSchedule* given, plan::KernelSchedule& s);

}  // namespace tilegen::schedule
