// Reductions for a block of one thread: the register digits of the source become loops. Where the unit digit
// belongs to the reduced axis, lanes accumulate and are combined at the end; where it belongs to a kept
// dimension, each lane owns a result.
#include <algorithm>

#include "arith/prove.h"
#include "lower/addressing.h"
#include "lower/iteration.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"
#include "lower/reduction_math.h"
#include "ops/op.h"

namespace tilegen::lower {

using ir::DType;
using ir::ReduceKind;

namespace {

thread::Combine lane_combine(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::sum:
    case ReduceKind::abssum:
      return thread::Combine::sum;
    case ReduceKind::min:
      return thread::Combine::min;
    case ReduceKind::max:
    case ReduceKind::absmax:
      return thread::Combine::max;
    case ReduceKind::product:
      return thread::Combine::product;
    case ReduceKind::bit_and:
      return thread::Combine::bit_and;
    case ReduceKind::bit_or:
      return thread::Combine::bit_or;
    case ReduceKind::bit_xor:
      return thread::Combine::bit_xor;
  }
  return thread::Combine::max;
}

}  // namespace

void OpLowering::reduce(int src, int dst, ReduceKind kind, int axis, bool accumulate) {
  if (k_.block_threads()) return reduce_in_block(src, dst, kind, axis, accumulate);
  if (k_.facts) return;
  ir::ExprPool& e = k_.out.exprs;
  const DType acc_type = type(dst);
  const std::vector<int64_t> extents = iteration_extents();
  // Lanes of bools cannot be combined.
  const int64_t lanes =
      ir::is_bool(acc_type)
          ? 1
          : k_.in.target.vector_bytes / std::max(ir::dtype_bytes(acc_type), ir::dtype_bytes(type(src)));
  auto mark = k_.ctx.mark();
  Nest nest = make_nest(k_, *plan_.iteration, lanes, extents);
  const bool vectorized = !nest.loops.empty() && nest.loops.back().form == thread::LoopForm::vectorized;
  const int64_t width = vectorized ? nest.loops.back().extent : 1;
  const ExprId lane = vectorized ? e.var(nest.loops.back().var) : e.const_int(0);

  // Loops over kept dimensions go outside, those over the axis inside, each in its old order.
  std::vector<NestLoop> kept, reduced;
  for (size_t i = 0; i + (vectorized ? 1 : 0) < nest.loops.size(); ++i)
    (arith::depends_on(e, nest.point[static_cast<size_t>(axis)], nest.loops[i].var) ? reduced : kept)
        .push_back(nest.loops[i]);
  const bool lanes_reduce =
      vectorized && arith::depends_on(e, nest.point[static_cast<size_t>(axis)], nest.loops.back().var);

  thread::Memory m;
  m.name = "partial" + std::to_string(k_.out.memories.size());
  m.space = thread::Space::local;
  m.type = acc_type;
  // Vectors of the unrolled innermost loop accumulate apart: independent sums hide the latency of the
  // combining instruction.
  const bool unrolled = lanes_reduce && !reduced.empty() && reduced.back().form == thread::LoopForm::unrolled;
  const int64_t partials = unrolled ? reduced.back().extent : 1;
  m.elements = width * partials;
  m.alignment = std::max<int64_t>(width * ir::dtype_bytes(acc_type), 1);
  m.in_registers = true;
  const MemoryId acc = k_.out.add_memory(std::move(m));

  // Result of this kept point, in dst's terms.
  auto result_index = [&](std::span<const ExprId> point) {
    const ir::Region& r = tile_op_->operands[static_cast<size_t>(dst)];
    std::vector<ExprId> indices;
    for (ExprId offset : r.offsets) indices.push_back(lower_expr(k_, offset));
    const std::vector<int> to = ops::layout_rule(*tile_op_).reduction->dst_dims;
    for (size_t d = 0; d < to.size(); ++d)
      if (to[d] >= 0)
        indices[static_cast<size_t>(to[d])] = e.add(indices[static_cast<size_t>(to[d])], point[d]);
    return indices;
  };
  auto source = [&]() {
    const ir::Region& r = tile_op_->operands[static_cast<size_t>(src)];
    std::vector<ExprId> indices;
    for (size_t d = 0; d < r.offsets.size(); ++d)
      indices.push_back(k_.simplified(e.add(lower_expr(k_, r.offsets[d]), nest.point[d])));
    ExprId v = e.cast(acc_type, load_element(k_, r.buffer, indices, false));
    return reduction_term(e, kind, v);
  };
  auto in_lanes = [&](thread::Block body) {
    if (!vectorized) return body;
    return wrap(k_, nest, nest.loops.size() - 1, nest.loops.size(), std::move(body), op_.path);
  };
  auto slot = [&](ExprId partial) { return k_.simplified(e.add(e.mul(partial, width), lane)); };
  auto store = [&](MemoryId mem, ExprId index, ExprId value, ExprId predicate) {
    return k_.out.add(thread::Store{mem, index, value, predicate, false, ExprId()}, op_.path);
  };
  auto load_acc = [&](ExprId index) { return e.load(acc, acc_type, std::vector<ExprId>{index}); };

  const ir::BufferId dst_buffer = tile_op_->operands[static_cast<size_t>(dst)].buffer;
  std::vector<ExprId> at = result_index(nest.point);
  const ExprId inside = both(k_, ExprId(), nest.inside);
  // A kept point of padding has no result; padding along the axis contributes the identity.
  const ExprId result_inside = lanes_reduce ? ExprId() : inside;
  const ExprId dst_predicate = store_predicate(k_, dst_buffer, at, result_inside, false);
  const ExprId dst_index = memory_index(k_, dst_buffer, at);
  const MemoryId dst_memory = memory_of(k_, dst_buffer);

  thread::Block body;
  const bool seeded = accumulate && !lanes_reduce;
  for (int64_t u = 0; u < partials; ++u) {
    ExprId start = reduction_identity(e, kind, acc_type);
    if (seeded) {
      const ExprId old = reduction_term(e, kind, load_element(k_, dst_buffer, at, false));
      start = kind == ReduceKind::sum ? old : reduction_combine(e, kind, start, old);
    }
    thread::Block init = in_lanes({store(acc, slot(e.const_int(u)), start, ExprId())});
    body.insert(body.end(), init.begin(), init.end());
  }

  const ExprId partial = unrolled ? e.var(reduced.back().var) : e.const_int(0);
  ExprId value = source();
  if (ExprId in = both(k_, ExprId(), nest.inside); in && lanes_reduce)
    value = e.select(in, value, reduction_identity(e, kind, acc_type));
  thread::Block step = in_lanes(
      {store(acc, slot(partial), reduction_combine(e, kind, load_acc(slot(partial)), value), ExprId())});
  Nest inner_loops{reduced, {}, {}};
  thread::Block loops = wrap(k_, inner_loops, 0, reduced.size(), std::move(step), op_.path);
  body.insert(body.end(), loops.begin(), loops.end());

  for (int64_t u = 1; u < partials; ++u) {
    thread::Block join = in_lanes({store(
        acc, lane, reduction_combine(e, kind, load_acc(lane), load_acc(slot(e.const_int(u)))), ExprId())});
    body.insert(body.end(), join.begin(), join.end());
  }
  if (lanes_reduce) {
    if (accumulate && (kind == ReduceKind::absmax || kind == ReduceKind::abssum)) {
      const ExprId old = e.load(dst_memory, acc_type, std::vector<ExprId>{dst_index});
      body.push_back(store(dst_memory, dst_index, reduction_term(e, kind, old), ExprId()));
    }
    thread::StmtId final_step = k_.out.add(
        thread::LaneReduce{lane_combine(kind), dst_memory, dst_index, acc, e.const_int(0), width, accumulate},
        op_.path);
    body.push_back(final_step);
  } else {
    thread::Block result = in_lanes({store(dst_memory, dst_index, load_acc(lane), dst_predicate)});
    body.insert(body.end(), result.begin(), result.end());
  }
  Nest outer_loops{kept, {}, {}};
  thread::Block all = wrap(k_, outer_loops, 0, kept.size(), std::move(body), op_.path);
  out_.insert(out_.end(), all.begin(), all.end());
  k_.ctx.rollback(mark);
}

}  // namespace tilegen::lower
