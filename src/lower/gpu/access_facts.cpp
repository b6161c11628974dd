#include "lower/gpu/access_facts.h"

#include <algorithm>

#include "lower/access_facts.h"
#include "lower/gpu/code_size.h"
#include "lower/gpu/element_nest.h"
#include "lower/gpu/mask_parts.h"
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

// What a walk with vectors of one width comes to.
struct Width {
  bool registers = false;  // it accesses nothing else
  bool accepted = false;   // it has such vectors
};

Width find_facts_of_width(LoweringContext& k, const Walk& walk, int64_t width, const EmitPoint& emit,
                          plan::OpAccessFacts& facts) {
  const Sizes before = sizes(k);
  Attempt attempt = try_walk(k, walk, width, emit, false);
  const bool versions = attempt.lane_bounds && attempt.interior, registers = attempt.registers;
  if (versions) {
    k.walk.assumed_interior = attempt.interior;
    attempt = try_walk(k, walk, width, emit, false);
    k.walk.assumed_interior = ExprId();
  }
  drop_since(k, before);
  judge_vector(k, attempt, width, walk.origin);
  const Width result{registers, attempt.wide && attempt.legal};
  if (result.accepted && versions) {
    int64_t& edge = facts.edge_operations[width];
    edge = std::max(edge, operations_of(k, walk, 1, emit));
  }
  return result;
}

// The widest vectors that the walk can have, as masks are known.
int64_t find_widest(LoweringContext& k, const Walk& walk, const EmitPoint& emit, plan::OpAccessFacts& facts) {
  int64_t widest = 1;
  for (int64_t width = walk.vector; width > 1 && !k.failed(); width /= 2) {
    const Width found = find_facts_of_width(k, walk, width, emit, facts);
    if (found.accepted) widest = std::max(widest, width);
    if (found.registers || (widest > 1 && !k.facts->all_widths)) break;
  }
  note_widest(k, walk.origin, widest);
  return widest;
}

}  // namespace

plan::OpAccessFacts& facts_of(LoweringContext& k, const std::string& op) { return k.facts->found[op]; }

void note_widest(LoweringContext& k, const std::string& op, int64_t width) {
  k.facts->differ = k.facts->differ || k.facts->widest.emplace(op, width).first->second != width;
}

void find_facts(LoweringContext& k, const Walk& walk, const EmitPoint& emit) {
  plan::OpAccessFacts& facts = facts_of(k, walk.origin);
  facts.in_memory = walk.in_memory;
  int64_t widest = 1;
  if (const ExprId clear = unmasked(k, walk, emit)) {
    facts.masked = true;
    k.walk.mask_known = clear;
    find_widest(k, walk, emit, facts);
    facts.unmasked_operations =
        std::max(facts.unmasked_operations, operations_of(k, walk, widest_of(walk, facts), emit));
    k.walk.mask_known = ExprId();
    k.walk.mask_open = true;
    widest = find_widest(k, walk, emit, facts);
    k.walk.mask_open = false;
  } else {
    widest = find_widest(k, walk, emit, facts);
  }
  if (k.facts->for_estimate) {
    // What an unrolled walk comes to is looked at for what it refuses, where no other walk was.
    if (walk.vector > 1 || walk.may_mask) return;
  } else if (const auto parts = find_mask_parts(k, walk, widest_of(walk, facts), emit);
             parts && !facts.mask_parts) {
    facts.mask_parts = parts;
  }
  if (widest > 1 && !k.facts->all_widths) return;
  const Sizes before = sizes(k);
  try_walk(k, walk, 1, emit, false);  // what is unrolled
  drop_since(k, before);
}

}  // namespace tilegen::lower
