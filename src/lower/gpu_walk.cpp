// Walks over the points of an iteration layout by a block of many threads, with the widest vectors that are
// legal.
#include <algorithm>

#include "lower/kernel_lowering.h"

namespace tilegen::lower {

// Widths from the given one down: the first whose wide accesses are all known to be aligned is taken.
void KernelLowering::emit_walk(const Walk& walk, const EmitPoint& emit, thread::Block& out) {
  if (emit_split_by_mask(walk, emit, out)) return;
  for (int64_t width = walk.vector; width > 1 && !failed(); width /= 2)
    if (emit_vectors(walk, width, emit, out)) return;
  if (failed()) return;
  const Attempt plain = try_walk(walk, 1, emit);
  out.insert(out.end(), plain.block.begin(), plain.block.end());
}

// Predicates that are the same for a whole vector stay on the accesses. Where they are not, the block takes
// one of two
// paths: all in bounds and wide, or element by element; only the second where both were too much code.
bool KernelLowering::emit_vectors(const Walk& walk, int64_t width, const EmitPoint& emit,
                                  thread::Block& out) {
  const Sizes before = sizes();
  auto drop = [&] { drop_since(before); };  // what refused attempts have left
  Attempt attempt = try_walk(walk, width, emit);
  if (!attempt.lane_bounds || !attempt.interior) {
    const bool taken = attempt.legal && attempt.wide;
    if (taken) out.insert(out.end(), attempt.block.begin(), attempt.block.end());
    if (!taken) drop();
    return taken;
  }
  drop();
  assumed_interior_ = attempt.interior;
  Attempt inside = try_walk(walk, width, emit);
  assumed_interior_ = ExprId();
  if (!inside.legal || !inside.wide) {
    drop();
    return false;
  }
  Attempt edge = try_walk(walk, 1, emit);
  if (!second_form_fits(edge.block, walk.origin, "no form of its own for blocks inside the tensors")) {
    drop();
    edge = try_walk(walk, 1, emit);
    out.insert(out.end(), edge.block.begin(), edge.block.end());
    return true;
  }
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
  Nest nest = make_thread_nest(walk.iteration, width, walk.iteration.shape(), walk.serial);
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
