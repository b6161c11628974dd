#include <algorithm>

#include "lower/access_facts.h"
#include "lower/kernel_lowering.h"

namespace tilegen::lower {

plan::OpAccessFacts& KernelLowering::facts_of(const std::string& op) { return (*facts_)[op]; }

// Whatever the plan says of vectors and versions: what each would be.
void KernelLowering::find_facts(const Walk& walk, const EmitPoint& emit) {
  plan::OpAccessFacts& facts = facts_of(walk.origin);
  facts.in_memory = walk.in_memory;
  const auto all_widths = [&] {
    for (int64_t width = walk.vector; width > 1 && !failed(); width /= 2)
      find_facts_of_width(walk, width, emit, facts);
  };
  if (const ExprId clear = unmasked(walk, emit)) {
    facts.masked = true;
    mask_known_ = clear;
    all_widths();
    facts.unmasked_operations =
        std::max(facts.unmasked_operations, operations_of(walk, widest_of(walk, facts), emit));
    mask_known_ = ExprId();
    mask_open_ = true;
    all_widths();
    mask_open_ = false;
  } else {
    all_widths();
  }
  const Sizes before = sizes();
  try_walk(walk, 1, emit);  // what is unrolled
  drop_since(before);
}

int64_t KernelLowering::widest_of(const Walk& walk, const plan::OpAccessFacts& facts) {
  for (int64_t width = walk.vector; width > 1; width /= 2)
    if (facts.wide.count(width) && !facts.misaligned.count(width)) return width;
  return 1;
}

int64_t KernelLowering::operations_of(const Walk& walk, int64_t width, const EmitPoint& emit) {
  const Sizes before = sizes();
  const Attempt attempt = try_walk(walk, width, emit);
  const int64_t count = operations(attempt.block);
  drop_since(before);
  return count;
}

void KernelLowering::find_facts_of_width(const Walk& walk, int64_t width, const EmitPoint& emit,
                                         plan::OpAccessFacts& facts) {
  const Sizes before = sizes();
  Attempt attempt = try_walk(walk, width, emit);
  const bool versions = attempt.lane_bounds && attempt.interior;
  if (versions) {
    assumed_interior_ = attempt.interior;
    attempt = try_walk(walk, width, emit);
    assumed_interior_ = ExprId();
  }
  drop_since(before);
  judge_vector(attempt, width, walk.origin);
  if (!versions || !attempt.wide || !attempt.legal) return;
  int64_t& edge = facts.edge_operations[width];
  edge = std::max(edge, operations_of(walk, 1, emit));
}

Expected<plan::AccessFacts> find_access_facts(const ir::Program& p, const expand::ScheduledKernel& scheduled,
                                              const target::Target& target) {
  return KernelLowering(p, scheduled, target).find_facts();
}

}  // namespace tilegen::lower
