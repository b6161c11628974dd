// Element-wise ops of a block of many threads.
#include <algorithm>

#include "lower/accesses.h"
#include "lower/kernel_lowering.h"

namespace tilegen::lower {

bool OpLowering::touches_registers() const {
  return std::any_of(op_.accesses.begin(), op_.accesses.end(),
                     [&](const infer::OpAccess& a) { return k_.in_thread_registers(a.buffer); });
}

void OpLowering::store_from_thread(const Nest& nest, ir::BufferId buffer, std::span<const ExprId> indices, ExprId value,
                                   ExprId condition, thread::Block& body) {
  if (k_.in_thread_registers(buffer)) {
    const int v = k_.value_of(buffer);
    if (v < 0) return;  // reported
    // Every thread that walks the point writes its copy; padding has registers of its own.
    k_.store_register(k_.held(v), indices, value, condition, body, op_.path);
    return;
  }
  ExprId predicate = k_.both(k_.both(ExprId(), nest.inside), condition);
  predicate = k_.store_predicate(buffer, indices, predicate, tile_op_ && k_.interior_);
  predicate = k_.both(nest.writer, predicate);
  body.push_back(k_.out_.add(
      thread::Store{k_.memory_of(buffer), k_.memory_index(buffer, indices), value, predicate, false, ExprId()}, op_.path));
}

// Widths from the planned one down: the first whose wide accesses are all known to be aligned is taken.
void OpLowering::emit_thread_nest(const layout::Fragment& iteration, int64_t vector, const EmitPoint& emit) {
  for (int64_t width = vector; width > 1 && !k_.failed(); width /= 2)
    if (emit_vectors(iteration, width, emit)) return;
  if (k_.failed()) return;
  const Attempt plain = try_thread_nest(iteration, 1, emit);
  out_.insert(out_.end(), plain.block.begin(), plain.block.end());
}

// Predicates that are the same for a whole vector stay on the accesses. Where they are not, the block takes one of two
// paths: all in bounds and wide, or element by element.
bool OpLowering::emit_vectors(const layout::Fragment& iteration, int64_t vector, const EmitPoint& emit) {
  thread::ThreadProgram& out = k_.out_;
  const size_t stmts = out.stmts.size(), vars = out.vars.size(), memories = out.memories.size();
  auto drop = [&] {  // what refused attempts have left
    out.stmts.resize(stmts);
    out.vars.resize(vars);
    out.memories.resize(memories);
    k_.fixed_vars_.erase(k_.fixed_vars_.lower_bound(VarId(vars)), k_.fixed_vars_.end());
  };
  Attempt attempt = try_thread_nest(iteration, vector, emit);
  if (!attempt.lane_bounds || !attempt.interior) {
    const bool taken = attempt.legal && attempt.wide;
    if (taken) out_.insert(out_.end(), attempt.block.begin(), attempt.block.end());
    if (!taken) drop();
    return taken;
  }
  drop();
  k_.tensors_in_bounds_ = true;
  Attempt inside = try_thread_nest(iteration, vector, emit);
  k_.tensors_in_bounds_ = false;
  if (!inside.legal || !inside.wide) {
    drop();
    return false;
  }
  Attempt edge = try_thread_nest(iteration, 1, emit);
  out_.push_back(out.add(thread::Branch{attempt.interior, std::move(inside.block), std::move(edge.block)}, op_.path));
  return true;
}

OpLowering::Attempt OpLowering::try_thread_nest(const layout::Fragment& iteration, int64_t vector,
                                                const EmitPoint& emit) {
  auto mark = k_.ctx_.mark();
  const bool serial = !k_.options_.assume_aligned && !touches_registers();
  k_.bounds_.clear();
  Nest nest = k_.make_thread_nest(iteration, vector, iteration_extents(), serial);
  thread::Block body;
  emit(nest, body);
  Attempt result;
  if (vector > 1) inspect_vector(nest, body, result);
  if (result.lane_bounds) result.interior = k_.interior_of_bounds(nest);
  k_.finish_thread_nest(nest, body);
  result.block = k_.wrap(nest, 0, nest.loops.size(), std::move(body), op_.path);
  k_.ctx_.rollback(mark);
  return result;
}

void OpLowering::inspect_vector(const Nest& nest, const thread::Block& body, Attempt& result) {
  ir::ExprPool& e = k_.out_.exprs;
  if (nest.loops.empty() || nest.loops.back().form != thread::LoopForm::vectorized) return;
  const VarId lane = nest.loops.back().var;
  const int64_t width = nest.loops.back().extent;
  auto access = [&](MemoryId id, ExprId index, ExprId predicate) {
    const thread::Memory& m = k_.out_.memory(id);
    if (m.in_registers) return;
    const auto split = arith::split_affine(k_.ctx_, index, lane);
    if (!split || !split->stride || *split->stride != 1) return;
    if (predicate && arith::depends_on(e, predicate, lane)) {
      result.lane_bounds = true;
      return;
    }
    const int64_t bytes = ir::dtype_bytes(m.type), part = std::min<int64_t>(16, width * bytes);
    result.wide = true;
    if (m.alignment % part != 0 || arith::divisor_of(k_.ctx_, split->rest) * bytes % part != 0) result.legal = false;
  };
  std::vector<ExprId> loads;
  for (thread::StmtId id : body) {
    const auto& s = std::get<thread::Store>(k_.out_.stmts[id.value].node);
    access(s.memory, s.index, s.predicate);
    std::vector<ExprId> todo = {s.index, s.value, s.predicate};
    std::set<ExprId> seen;
    while (!todo.empty()) {
      const ExprId at = todo.back();
      todo.pop_back();
      if (!at || !seen.insert(at).second) continue;
      const ir::ExprNode& n = e[at];
      for (ExprId operand : {n.a, n.b, n.c}) todo.push_back(operand);
      if (n.op != ir::ExprOp::load) continue;
      const std::vector<ExprId> indices(e.indices(at).begin(), e.indices(at).end());
      for (ExprId index : indices) todo.push_back(index);
      access(n.object, indices[0], indices.size() > 1 ? indices[1] : ExprId());
    }
  }
}

}  // namespace tilegen::lower
