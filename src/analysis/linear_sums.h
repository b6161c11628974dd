// What a loop makes of a row's sum: the values that may stay in parts there, by dependence alone.
//
// requires: a reduction by `sum` inside the loop.
// ensures: `values` are the least that the result must be kept in parts with: what is made of parts is in
// parts. Inside the loop they are read only where others of them are written, by expressions that are linear
// in them.
// why here: both planning and the joins need it.
// refuses: with the reason as text, a loop in which something else reads or writes one of them, or that
//   carries none.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "analysis/kernel_ops.h"

namespace tilegen::analysis {

struct PartialSums {
  std::set<const KernelOp*> reductions;  // all that make parts
  std::set<const KernelOp*> others;      // element-wise ops in the loop that touch parts
  std::set<ValueId> values;
  std::set<ValueId> outside;  // those of them that are used outside the loop as well
  std::string refusal;        // empty: the loop may keep them in parts
};
PartialSums sum_parts(const ir::Program& p, const KernelOps& ops, ir::StmtId loop, const KernelOp& reduction);

// A reduction that adds up.
bool is_sum(const ir::Program& p, const KernelOp& op);

// The value is 0 when the loop begins, or nothing sees what it is then: the loop is known to run, and
// overwrites it first.
bool begins_as_zero(const ir::Program& p, int kernel, const KernelOps& ops, ir::StmtId loop, ValueId value);

}  // namespace tilegen::analysis
