// Scratch slices of shared memory that a kernel needs.
//
// requires: layouts, iterations and conversions of every op.
// ensures: a slice of enough bytes, named as lowering looks for it (analysis/exchange.h), for every exchange
// that goes through memory. why here: shared memory is divided behind it.
#pragma once

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

// One per statement, and one per copy of a value that an op works on.
struct Scratch {
  std::string name;
  std::string statement;  // path
  int64_t bytes = 0;
};
std::vector<Scratch> plan_scratch(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                                  const std::vector<plan::ValuePlan>& values,
                                  const std::vector<plan::OpPlan>& plans,
                                  const std::vector<plan::ConversionPlan>& conversions,
                                  const target::Target& t);

}  // namespace tilegen::schedule
