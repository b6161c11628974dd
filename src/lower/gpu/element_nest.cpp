// Walks over the points of an iteration layout by a block of many threads.
#include <algorithm>

#include "lower/kernel_lowering.h"

namespace tilegen::lower {

// Walks of an op go by its plan. Others move registers through memory whose layout is known: as wide as that
// lets them.
void KernelLowering::emit_walk(const Walk& walk, const EmitPoint& emit, thread::Block& out) {
  if (!walk.plan) return emit_widest(walk, emit, out);
  if (facts_) return find_facts(walk, emit);
  if (emit_split_by_mask(walk, emit, out)) return;
  if (failed() || (walk.vector > 1 && emit_vectors(walk, emit, out)) || failed()) return;
  const Attempt plain = try_walk(walk, 1, emit);
  out.insert(out.end(), plain.block.begin(), plain.block.end());
}

void KernelLowering::emit_widest(const Walk& walk, const EmitPoint& emit, thread::Block& out) {
  for (int64_t width = walk.vector; !failed(); width /= 2) {
    const Sizes before = sizes();
    const Attempt attempt = try_walk(walk, std::max<int64_t>(width, 1), emit);
    if (width <= 1 || (attempt.legal && attempt.wide)) {
      out.insert(out.end(), attempt.block.begin(), attempt.block.end());
      return;
    }
    drop_since(before);
  }
}

// Vectors as planned; false where no access is one. Predicates that are the same for a whole vector stay on
// the accesses. Where they are not, the block takes one of two paths: all in bounds and wide, or element by
// element.
bool KernelLowering::emit_vectors(const Walk& walk, const EmitPoint& emit, thread::Block& out) {
  const Sizes before = sizes();
  const auto wide = [&](const Attempt& a) {
    judge_vector(a, walk.vector, walk.origin);
    if (!a.wide) drop_since(before);
    return a.wide && a.legal;
  };
  const Attempt attempt = try_walk(walk, walk.vector, emit);
  if (!attempt.lane_bounds || !attempt.interior || !walk.plan->full_tile_version.value_or(false)) {
    if (!wide(attempt)) return false;
    out.insert(out.end(), attempt.block.begin(), attempt.block.end());
    return true;
  }
  drop_since(before);
  assumed_interior_ = attempt.interior;
  Attempt inside = try_walk(walk, walk.vector, emit);
  assumed_interior_ = ExprId();
  if (!wide(inside)) return false;
  Attempt edge = try_walk(walk, 1, emit);
  out.push_back(out_.add(thread::Branch{attempt.interior, std::move(inside.block), std::move(edge.block)},
                         walk.origin));
  return true;
}

void KernelLowering::drop_since(const Sizes& before) {
  out_.stmts.resize(before.stmts);
  out_.vars.resize(before.vars);
  out_.memories.resize(before.memories);
  fixed_vars_.erase(fixed_vars_.lower_bound(VarId(before.vars)), fixed_vars_.end());
  lanes_.erase(lanes_.lower_bound(VarId(before.vars)), lanes_.end());
}

KernelLowering::Attempt KernelLowering::try_walk(const Walk& walk, int64_t width, const EmitPoint& emit) {
  auto mark = ctx_.mark();
  bounds_.clear();
  staged_ = false;
  if (assumed_interior_) ctx_.assume(assumed_interior_);
  if (mask_known_) ctx_.assume(mask_known_);
  Nest nest = make_thread_nest(walk.iteration, width, walk.iteration.shape(),
                               walk.plan && walk.in_memory && walk.plan->unroll == 1);
  thread::Block body;
  no_padding_ = both(ExprId(), nest.inside);
  emit(nest, body);
  no_padding_ = ExprId();
  if (mask_known_) fold_mask(body);
  if (mask_open_) shorten_mask(nest, body);
  Attempt result;
  if (width > 1) inspect_vector(nest, body, result);
  if (staged_) result.legal = false;  // a barrier stands between the elements of a vector
  if (result.lane_bounds) result.interior = interior_of_bounds(nest);
  finish_thread_nest(nest, body);
  if (!body.empty()) result.block = wrap(nest, 0, nest.loops.size(), std::move(body), walk.origin);
  ctx_.rollback(mark);
  return result;
}

// Vectors that were looked at: a fact, or as planned.
void KernelLowering::judge_vector(const Attempt& a, int64_t width, const std::string& op) {
  if (!a.wide) return;
  if (facts_)
    (a.legal ? facts_of(op).wide : facts_of(op).misaligned).insert(width);
  else if (!a.legal)
    fail(DiagCode::schedule_illegal, op,
         "vectors of " + std::to_string(width) + " elements: an access is not known to be aligned to them",
         "give a smaller `vector`, or leave it out to have it planned");
}

void KernelLowering::inspect_vector(const Nest& nest, const thread::Block& body, Attempt& result) {
  ir::ExprPool& e = out_.exprs;
  if (nest.loops.empty() || nest.loops.back().form != thread::LoopForm::vectorized) return;
  const VarId lane = nest.loops.back().var;
  const int64_t width = nest.loops.back().extent;
  auto access = [&](MemoryId id, ExprId index, ExprId predicate) {
    const thread::Memory& m = out_.memory(id);
    if (m.in_registers) return;
    const auto split = arith::split_affine(ctx_, index, lane);
    if (!split || !split->stride || *split->stride != 1) return;
    // As it will stand: a bound of whole vectors is no longer one of elements.
    if (predicate && arith::depends_on(e, simplified(predicate), lane)) {
      result.lane_bounds = true;
      return;
    }
    const int64_t bytes = ir::dtype_bytes(m.type),
                  part = std::min<int64_t>(target_.vector_bytes, width * bytes);
    result.wide = true;
    if (m.alignment % part != 0 || arith::divisor_of(ctx_, split->rest) * bytes % part != 0)
      result.legal = false;
  };
  for (thread::StmtId id : body) {
    const auto& s = std::get<thread::Store>(out_.stmts[id.value].node);
    access(s.memory, s.index, s.predicate);
    std::vector<ExprId> todo = {s.index, s.value, s.predicate};
    std::set<ExprId> seen;
    while (!todo.empty()) {
      const ExprId at = todo.back();
      todo.pop_back();
      if (!at || !seen.insert(at).second) continue;
      const ir::ExprNode n = e[at];
      for (ExprId operand : {n.a, n.b, n.c}) todo.push_back(operand);
      if (n.op != ir::ExprOp::load) continue;
      const std::vector<ExprId> indices(e.indices(at).begin(), e.indices(at).end());
      for (ExprId index : indices) todo.push_back(index);
      access(n.object, indices[0], indices.size() > 1 ? indices[1] : ExprId());
    }
  }
}

}  // namespace tilegen::lower
