// Sums that a loop only carries: the threads that share a row need not meet in every iteration.
//
// A row's sum is spread over threads when they reduce it. What is made of such sums by adding them, by adding
// them up and by multiplying with what is the same for all threads of the row may stay in parts, one a
// thread, whose sum it is; the threads meet where something else reads it, after the loop.
//
// requires: layouts and iterations of every op.
// ensures: OpPlan::deferred_to of every sum in a loop. Where it names a loop: in this loop parts are only
// read where parts are written, and every op that does so works on the row in every thread that has a part of
// it; what enters the loop is split into parts exactly (one thread keeps it, the others have 0) and what
// leaves it is joined, also where it ran no iteration.
// why here: it needs the layouts, and the joins need scratch.
// refuses: schedule_illegal, a given loop after which the sum cannot be joined. With a note (joined in every
// iteration): a sum that the loop only carries, but in layouts that do not allow parts.
#pragma once

#include <string>
#include <vector>

#include "infer/infer_layouts.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

// `whole`: sums that are joined in every iteration.
Checked plan_partial_sums(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                          const target::Target& t, const plan::KernelSchedule* given,
                          const std::set<analysis::OpId>& whole, infer::InferResult& layouts);

}  // namespace tilegen::schedule
