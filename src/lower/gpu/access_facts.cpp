#include "lower/gpu/access_facts.h"

#include <algorithm>

#include "lower/access_facts.h"
#include "lower/gpu/code_size.h"
#include "lower/gpu/element_nest.h"
#include "lower/gpu/masks.h"
#include "lower/lowering_context.h"

namespace tilegen::lower {

namespace {

int64_t widest_of(const Walk& walk, const plan::OpAccessFacts& facts) {
  for (int64_t width = walk.vector; width > 1; width /= 2)
    if (facts.wide.count(width) && !facts.misaligned.count(width)) return width;
  return 1;
}

int64_t operations_of(LoweringContext& k, const Walk& walk, int64_t width, const EmitPoint& emit) {
  const Sizes before = sizes(k);
  const Attempt attempt = try_walk(k, walk, width, emit);
  const int64_t count = operations(k, attempt.block);
  drop_since(k, before);
  return count;
}

void find_facts_of_width(LoweringContext& k, const Walk& walk, int64_t width, const EmitPoint& emit,
                         plan::OpAccessFacts& facts) {
  const Sizes before = sizes(k);
  Attempt attempt = try_walk(k, walk, width, emit);
  const bool versions = attempt.lane_bounds && attempt.interior;
  if (versions) {
    k.walk.assumed_interior = attempt.interior;
    attempt = try_walk(k, walk, width, emit);
    k.walk.assumed_interior = ExprId();
  }
  drop_since(k, before);
  judge_vector(k, attempt, width, walk.origin);
  if (!versions || !attempt.wide || !attempt.legal) return;
  int64_t& edge = facts.edge_operations[width];
  edge = std::max(edge, operations_of(k, walk, 1, emit));
}

}  // namespace

plan::OpAccessFacts& facts_of(LoweringContext& k, const std::string& op) { return (*k.facts)[op]; }

void find_facts(LoweringContext& k, const Walk& walk, const EmitPoint& emit) {
  plan::OpAccessFacts& facts = facts_of(k, walk.origin);
  facts.in_memory = walk.in_memory;
  const auto all_widths = [&] {
    for (int64_t width = walk.vector; width > 1 && !k.failed(); width /= 2)
      find_facts_of_width(k, walk, width, emit, facts);
  };
  if (const ExprId clear = unmasked(k, walk, emit)) {
    facts.masked = true;
    k.walk.mask_known = clear;
    all_widths();
    facts.unmasked_operations =
        std::max(facts.unmasked_operations, operations_of(k, walk, widest_of(walk, facts), emit));
    k.walk.mask_known = ExprId();
    k.walk.mask_open = true;
    all_widths();
    k.walk.mask_open = false;
  } else {
    all_widths();
  }
  const Sizes before = sizes(k);
  try_walk(k, walk, 1, emit);  // what is unrolled
  drop_since(k, before);
}

}  // namespace tilegen::lower
