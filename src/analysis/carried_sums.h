// Sums that loops carry in parts, one a thread of the row (plan::OpPlan::deferred_to): what is split in
// front of the loop and joined after it.
#pragma once

#include <set>
#include <vector>

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"

namespace tilegen::analysis {

// Sums that a loop carries in parts.
struct CarriedSums {
  ir::StmtId loop;
  // one that makes parts; all of them spread rows over the same threads
  const KernelOp* reduction = nullptr;
  std::vector<ValueId> joined;  // values that are used outside the loop as well: whole there, in parts in it
  std::set<ValueId> split;      // those of them that may be other than 0, and are seen, when the loop begins
};
std::vector<CarriedSums> carried_sums(const ir::Program& p, int kernel, const KernelOps& ops, OpPlans plans);

}  // namespace tilegen::analysis
