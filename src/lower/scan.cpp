// Scans for a block of one thread: loops over the kept dimensions outside, those over the axis inside, the
// widest steps first, with a running total. Lanes of a vector are of a kept dimension and have totals of
// their own; a vector along the axis is walked one by one.
#include <algorithm>

#include "arith/prove.h"
#include "lower/addressing.h"
#include "lower/iteration.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"
#include "lower/reduction_math.h"
#include "ops/layout_rule.h"

namespace tilegen::lower {

void OpLowering::scan(int src, int dst, const ops::Scan& scan) {
  if (!has_iteration()) return;
  if (k_.block_threads()) return scan_in_block(src, dst, scan);
  if (k_.facts) return;
  ir::ExprPool& e = k_.out.exprs;
  const ir::DType to = type(dst);
  const int64_t bytes = std::max(ir::dtype_bytes(to), ir::dtype_bytes(type(src)));
  const auto mark = k_.ctx.mark();
  const auto along = [&](const Nest& nest, const NestLoop& loop) {
    return scan.axis >= 0 && arith::depends_on(e, nest.point[static_cast<size_t>(scan.axis)], loop.var);
  };
  const auto in_lanes_of = [](const Nest& nest) {
    return !nest.loops.empty() && nest.loops.back().form == thread::LoopForm::vectorized;
  };
  Nest nest = make_nest(k_, *plan_.iteration, k_.in.target.vector_bytes / bytes, op_.view.extents);
  if (in_lanes_of(nest) && along(nest, nest.loops.back())) {
    k_.ctx.rollback(mark);
    nest = make_nest(k_, *plan_.iteration, 1, op_.view.extents);
  }
  const bool vectorized = in_lanes_of(nest);
  const int64_t width = vectorized ? nest.loops.back().extent : 1;
  const ExprId lane = vectorized ? e.var(nest.loops.back().var) : e.const_int(0);
  std::vector<NestLoop> kept, inner;
  for (size_t i = 0; i + (vectorized ? 1 : 0) < nest.loops.size(); ++i)
    (along(nest, nest.loops[i]) ? inner : kept).push_back(nest.loops[i]);
  const auto step = [&](const NestLoop& loop) {
    const auto split = arith::split_affine(k_.ctx, nest.point[static_cast<size_t>(scan.axis)], loop.var);
    return split && split->stride ? *split->stride : 0;
  };
  std::sort(inner.begin(), inner.end(),
            [&](const NestLoop& a, const NestLoop& b) { return step(a) > step(b); });

  const auto add_registers = [&](const std::string& name) {
    thread::Memory m;
    m.name = name + std::to_string(k_.out.memories.size());
    m.space = thread::Space::local;
    m.type = to;
    m.elements = width;
    m.alignment = std::max<int64_t>(width * ir::dtype_bytes(to), 1);
    m.in_registers = true;
    return k_.out.add_memory(std::move(m));
  };
  const MemoryId running = add_registers("running");
  const auto in_lanes = [&](thread::Block body) {
    if (!vectorized) return body;
    return wrap(k_, nest, nest.loops.size() - 1, nest.loops.size(), std::move(body), op_.path);
  };
  const auto set_running = [&](ExprId value) {
    return in_lanes({k_.out.add(thread::Store{running, lane, value, ExprId(), false, ExprId()}, op_.path)});
  };
  const ExprId total = e.load(running, to, std::vector<ExprId>{lane});
  // Without the element itself the first result is what nothing comes to, 0 and not -0.
  const ExprId identity =
      scan.exclusive ? reduction_identity(e, scan.kind, to) : scan_identity(e, scan.kind, to);

  Nest points = nest;
  if (scan.reverse && scan.axis >= 0) {
    ExprId& at = points.point[static_cast<size_t>(scan.axis)];
    at = k_.simplified(e.sub(e.const_int(op_.view.extents[static_cast<size_t>(scan.axis)] - 1), at));
  }
  no_padding_ = both(k_, ExprId(), nest.inside);
  ExprId value = e.cast(to, load(src, points.point));
  if (no_padding_) value = e.select(no_padding_, value, identity);
  no_padding_ = ExprId();
  thread::Block body, write;
  const auto append = [&](const thread::Block& more) { body.insert(body.end(), more.begin(), more.end()); };
  if (scan.exclusive) {  // dst may be src: the element is read before the result is written
    const MemoryId own = add_registers("element");
    append(in_lanes({k_.out.add(thread::Store{own, lane, value, ExprId(), false, ExprId()}, op_.path)}));
    value = e.load(own, to, std::vector<ExprId>{lane});
  } else {
    append(set_running(reduction_combine(e, scan.kind, total, value)));
  }
  store_element(points, tile_op_->operands[static_cast<size_t>(dst)].buffer, element_at(dst, points.point),
                total, ExprId(), write);
  append(in_lanes(std::move(write)));
  if (scan.exclusive) append(set_running(reduction_combine(e, scan.kind, total, value)));
  body = wrap(k_, Nest{inner, {}, {}}, 0, inner.size(), std::move(body), op_.path);
  thread::Block all = set_running(identity);
  all.insert(all.end(), body.begin(), body.end());
  all = wrap(k_, Nest{kept, {}, {}}, 0, kept.size(), std::move(all), op_.path);
  out_.insert(out_.end(), all.begin(), all.end());
  k_.ctx.rollback(mark);
}

}  // namespace tilegen::lower
