// Walks over the points of an iteration layout by a block of many threads.
#include "lower/gpu/element_nest.h"

#include <algorithm>

#include "arith/prove.h"
#include "lower/addressing.h"
#include "lower/gpu/access_facts.h"
#include "lower/gpu/full_tile.h"
#include "lower/gpu/iteration.h"
#include "lower/gpu/joined_accesses.h"
#include "lower/gpu/mask_parts.h"
#include "lower/gpu/masks.h"
#include "lower/iteration.h"
#include "lower/lowering_context.h"
#include "support/diag_codes.h"
#include "support/small_set.h"

namespace tilegen::lower {

namespace {

void emit_widest(LoweringContext& k, const Walk& walk, const EmitPoint& emit, thread::Block& out) {
  for (int64_t width = walk.vector; !k.failed(); width /= 2) {
    const Sizes before = sizes(k);
    const Attempt attempt = try_walk(k, walk, std::max<int64_t>(width, 1), emit);
    if (width <= 1 || (attempt.legal && attempt.wide)) {
      out.insert(out.end(), attempt.block.begin(), attempt.block.end());
      return;
    }
    drop_since(k, before);
  }
}

// Vectors as planned; false where no access is one. Predicates that are the same for a whole vector stay on
// the accesses.
bool emit_vectors(LoweringContext& k, const Walk& walk, const EmitPoint& emit, thread::Block& out) {
  const Sizes before = sizes(k);
  const Attempt attempt = try_walk(k, walk, walk.vector, emit);
  judge_vector(k, attempt, walk.vector, walk.origin);
  if (!attempt.wide) drop_since(k, before);
  if (!attempt.wide || !attempt.legal) return false;
  out.insert(out.end(), attempt.block.begin(), attempt.block.end());
  return true;
}

// Where predicates differ between the lanes of a vector, blocks take one of two paths: all in bounds and
// wide, or element by element.
ExprId full_tile(LoweringContext& k, const Walk& walk, const EmitPoint& emit) {
  if (walk.vector <= 1) return ExprId();
  const Sizes before = sizes(k);
  const Attempt attempt = try_walk(k, walk, walk.vector, emit);
  drop_since(k, before);
  return attempt.lane_bounds ? attempt.interior : ExprId();
}

// Parts as planned. A walk that is not taken in parts, or whose vectors are none, is left to others.
bool emit_parts(LoweringContext& k, const Walk& walk, const EmitPoint& emit, thread::Block& out) {
  const int64_t parts = walk.plan->mask_parts;
  if (parts <= 1 || k.walk.mask_known || k.walk.edge) return false;
  for (int64_t width : {walk.vector, int64_t{1}}) {
    const Sizes before = sizes(k);
    const Attempt attempt = walk_in_parts(k, walk, parts, std::max<int64_t>(width, 1), emit);
    if (attempt.legal && (attempt.wide || width <= 1)) {
      out.insert(out.end(), attempt.block.begin(), attempt.block.end());
      return true;
    }
    drop_since(k, before);
  }
  return false;
}

bool is_of_vectors(const Nest& nest) {
  return !nest.loops.empty() && nest.loops.back().form == thread::LoopForm::vectorized;
}

// With loops of `lanes` as vectors; without them accesses of a point may be joined, to as many as `width`.
Attempt try_nest(LoweringContext& k, const Walk& walk, int64_t lanes, int64_t width, const EmitPoint& emit,
                 bool code) {
  auto mark = k.ctx.mark();
  k.walk.bounds.clear();
  k.walk.staged = false;
  if (k.walk.assumed_interior) k.ctx.assume(k.walk.assumed_interior);
  if (k.walk.mask_known) k.ctx.assume(k.walk.mask_known);
  Nest nest = make_thread_nest(k, walk.iteration, lanes, walk.iteration.shape(),
                               walk.plan && walk.in_memory && walk.plan->unroll == 1);
  thread::Block body;
  k.walk.no_padding = both(k, ExprId(), nest.inside);
  emit(nest, body);
  k.walk.no_padding = ExprId();
  if (k.walk.mask_known) fold_mask(k, body);
  if (k.walk.mask_open) shorten_mask(k, nest, body);
  Attempt result;
  if (width > 1 && is_of_vectors(nest))
    inspect_vector(k, nest, body, result);
  else if (width > 1 && !k.walk.staged)
    result.wide = join_accesses(k, width, body, walk.origin);
  if (k.walk.staged) result.legal = false;  // a barrier stands between the elements of a vector
  if (result.lane_bounds) result.interior = interior_of_bounds(k, nest);
  if (code) finish_thread_nest(k, nest, body);
  const bool seen = code || !k.facts || !k.facts->for_estimate;  // what is not only looked at
  if (!body.empty() && seen) result.block = wrap(k, nest, 0, nest.loops.size(), std::move(body), walk.origin);
  k.ctx.rollback(mark);
  result.scattered = is_of_vectors(nest) && !result.wide && !result.lane_bounds && !result.registers;
  return result;
}

void find_condition(LoweringContext& k, const Walk& walk, const EmitPoint& emit) {
  ConditionSearch& search = *k.condition_search;
  const bool of_mask = search.condition == expand::Version::Condition::unmasked;
  search.found = both(k, search.found, of_mask ? unmasked(k, walk, emit) : full_tile(k, walk, emit));
}

}  // namespace

// Walks of an op go by its plan. Others move registers through memory whose layout is known: as wide as that
// lets them.
void emit_walk(LoweringContext& k, const Walk& walk, const EmitPoint& emit, thread::Block& out) {
  if (k.facts) return walk.plan ? find_facts(k, walk, emit) : void();
  if (!walk.plan) return emit_widest(k, walk, emit, out);
  if (k.condition_search) return find_condition(k, walk, emit);
  if (emit_parts(k, walk, emit, out)) return;
  const bool masked =
      !k.walk.mask_known && !k.walk.mask_open && unmasked(k, walk, emit).valid();  // in no version
  if (masked) k.walk.mask_open = true;
  if (!k.failed() && (k.walk.edge || walk.vector <= 1 || !emit_vectors(k, walk, emit, out)) && !k.failed()) {
    const Attempt plain = try_walk(k, walk, 1, emit);
    out.insert(out.end(), plain.block.begin(), plain.block.end());
  }
  if (masked) k.walk.mask_open = false;
}

Sizes sizes(const LoweringContext& k) {
  return {k.out.stmts.size(), k.out.vars.size(), k.out.memories.size()};
}

void drop_since(LoweringContext& k, const Sizes& before) {
  k.out.stmts.resize(before.stmts);
  k.out.vars.resize(before.vars);
  k.out.memories.resize(before.memories);
  k.walk.fixed_vars.erase(k.walk.fixed_vars.lower_bound(VarId(before.vars)), k.walk.fixed_vars.end());
  k.walk.lanes.erase(k.walk.lanes.lower_bound(VarId(before.vars)), k.walk.lanes.end());
}

Attempt try_walk(LoweringContext& k, const Walk& walk, int64_t width, const EmitPoint& emit, bool code) {
  const Sizes before = sizes(k);
  const Attempt vectors = try_nest(k, walk, width, width, emit, code);
  if (width <= 1 || !vectors.scattered) return vectors;
  drop_since(k, before);
  return try_nest(k, walk, 1, width, emit, code);
}

// Vectors that were looked at: a fact, or as planned.
void judge_vector(LoweringContext& k, const Attempt& a, int64_t width, const std::string& op) {
  if (!a.wide) return;
  if (k.facts)
    (a.legal ? facts_of(k, op).wide : facts_of(k, op).misaligned).insert(width);
  else if (!a.legal)
    k.fail(DiagCode::schedule_illegal, op,
           "vectors of " + std::to_string(width) + " elements: an access is not known to be aligned to them",
           "give a smaller `vector`, or leave it out to have it planned");
}

void inspect_vector(LoweringContext& k, const Nest& nest, const thread::Block& body, Attempt& result) {
  ir::ExprPool& e = k.out.exprs;
  if (!is_of_vectors(nest)) return;
  bool memory = false;
  const VarId lane = nest.loops.back().var;
  const int64_t width = nest.loops.back().extent;
  auto access = [&](MemoryId id, ExprId index, ExprId predicate) {
    const thread::Memory& m = k.out.memory(id);
    if (m.in_registers) return;
    memory = true;
    const auto split = arith::split_affine(k.ctx, index, lane);
    if (!split || !split->stride || *split->stride != 1) return;
    // As it will stand: a bound of whole vectors is no longer one of elements.
    if (predicate && arith::depends_on(e, k.simplified(predicate), lane)) {
      result.lane_bounds = true;
      return;
    }
    const int64_t bytes = ir::dtype_bytes(m.type),
                  part = std::min<int64_t>(k.in.target.vector_bytes, width * bytes);
    result.wide = true;
    if (m.alignment % part != 0 || arith::divisor_of(k.ctx, split->rest) * bytes % part != 0)
      result.legal = false;
  };
  for (thread::StmtId id : body) {
    const auto& s = std::get<thread::Store>(k.out.stmts[id.value].node);
    access(s.memory, s.index, s.predicate);
    std::vector<ExprId> todo = {s.index, s.value, s.predicate};
    SmallSet<ExprId, 32> seen;
    while (!todo.empty()) {
      const ExprId at = todo.back();
      todo.pop_back();
      if (!at || !seen.insert(at)) continue;
      const ir::ExprNode n = e[at];
      for (ExprId operand : {n.a, n.b, n.c}) todo.push_back(operand);
      if (n.op != ir::ExprOp::load) continue;
      const std::vector<ExprId> indices(e.indices(at).begin(), e.indices(at).end());
      for (ExprId index : indices) todo.push_back(index);
      access(n.object, indices[0], indices.size() > 1 ? indices[1] : ExprId());
    }
  }
  result.registers = !body.empty() && !memory;
}

}  // namespace tilegen::lower
