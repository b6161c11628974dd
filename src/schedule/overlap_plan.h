// The order in which one iteration of a loop with a producer issues the ops of the computing threads.
//
// A product that needs what threads made of an earlier product's sums would leave the matrix units idle while
// they do so. It may lag: iteration i issues the earlier product of i and the later product of i - 1, and the
// threads' work on the first runs beside the second.
//
// requires: the loop's products are asynchronous (warpgroup_mma) and their shared tiles come through
// channels, which keep a slot for each iteration under way.
// ensures: every value in registers has one place, and each of its readers sees what it sees in program
// order: an op that lags behind one it conflicts with comes before it in the order. The ops of a branch or a
//   loop inside stay together.
// why here: engines decide what is asynchronous; lowering follows the order and plants the waits at first
//   use.
// refuses: schedule_illegal, a given order in which an op sees something else. With a note (nothing lags): a
// chain of more than two such products.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "analysis/dependence.h"
#include "plan/schedule.h"

namespace tilegen::schedule {

// Stages of a loop's ops in the order of issue, behind those of `copies`, which fill tiles that have slots:
// the stage behind the last is of the iteration before. With `given` the plan's own stages are judged
// instead. `note`: why nothing lags though a product waits for another.
Checked order_loop(const ir::Program& p, const analysis::KernelOps& ops,
                   analysis::LoopDependences& dependences, ir::StmtId loop,
                   const std::set<const analysis::KernelOp*>& products,
                   const std::set<const analysis::KernelOp*>& copies, bool given, plan::LoopPlan& plan,
                   std::string& note);

}  // namespace tilegen::schedule
