// Whether the computing warpgroups of a loop take turns with the matrix units (ping-pong): each issues the
// products of an iteration in its turn, and works on their sums while those of the others run.
//
// Left alone, warpgroups that began together tend to do the same at the same time: products of all wait for
// the matrix units, which then idle while all work on elements. Turns keep them apart. An iteration's turn
// costs two hardware barriers, and pays where the threads' work is a real part of the iteration.
//
// requires: engines, layouts and the order of issue of the loop; cycles of its products.
// ensures: plan.ping_pong is set for a loop whose products are warpgroups', and on only where no op from the
// first product of an iteration to the last makes threads of several warpgroups meet.
// why here: after order_loop, whose order tells what stands between the products.
// refuses (schedule_illegal): given turns in a loop that cannot have them.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

// What is known of a loop when turns are decided.
struct PingPongFacts {
  const target::Target& target;
  std::map<const analysis::KernelOp*, double>
      products;                                  // of warpgroups, fed by a producer; cycles of the block
  std::set<const analysis::KernelOp*> copies;    // that the producer makes
  std::set<const analysis::KernelOp*> meetings;  // ops for which threads of the block meet
  int64_t threads = 0;                           // computing ones
};

// Issue slots of a multiprocessor, in cycles, that the op's work on elements takes in one iteration; what is
// the same for elements is counted once, and indices are not.
double thread_cycles(const ir::Program& p, const analysis::KernelOp& op, const target::Target& t);

// `given`: the schedule's word on it, or nothing.
Checked plan_ping_pong(const ir::Program& p, const analysis::KernelOps& ops, ir::StmtId loop,
                       const PingPongFacts& facts, std::optional<bool> given, plan::LoopPlan& plan);

}  // namespace tilegen::schedule
