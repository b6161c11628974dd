// What goes on over the end of an iteration of a loop with a producer: products that are in flight, and the
// first wait of the next iteration, asked for ahead.
//
// requires: engines, layouts and slots; the order of issue of the loop.
// ensures: plan.drained and plan.peek are set for a loop that a producer fills.
// why here: both follow from the order of issue; expansion obeys.
// refuses: schedule_illegal, a given `peek` of a loop that does not begin with a product's wait while others
//   are in flight, and a given `drained` = false where iterations use other registers in turn. A loop whose
//   iterations do not begin with the products in flight that they end with is drained by expansion, whatever
//   the plan says: otherwise nothing is right.
#pragma once

#include <set>

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "support/diagnostic.h"

namespace tilegen::schedule {

struct InFlightFacts {
  std::set<analysis::OpId> products;      // of warpgroups, among ops
  std::set<analysis::OpId> copies;        // that the producer makes
  std::set<analysis::ValueId> registers;  // values that threads hold
  bool rotates_registers = false;         // iterations of the loop have values in other registers, in turn
};

Checked plan_in_flight(const ir::Program& p, const analysis::KernelOps& ops, ir::StmtId loop,
                       const InFlightFacts& facts, const plan::LoopPlan* given, plan::LoopPlan& plan);

}  // namespace tilegen::schedule
