// Scratch slices of shared memory that a kernel needs.
//
// requires: layouts, iterations and conversions of every op.
// ensures: a slice of enough bytes for every exchange
// that goes through memory. why here: shared memory is divided after it.
#pragma once

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

// One per statement, and one per copy of a value that an op works on.
struct Scratch {
  std::string statement;  // path of that which uses it
  plan::Storage storage = plan::Storage::scratch;
  std::string owner;  // path
  std::string value;  // of a copy
  int64_t bytes = 0;
};
std::vector<Scratch> plan_scratch(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                                  analysis::ValuePlans values, analysis::OpPlans plans,
                                  const std::vector<plan::ConversionPlan>& conversions,
                                  const target::Target& t);

}  // namespace tilegen::schedule
