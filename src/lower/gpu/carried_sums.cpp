// Sums that a loop carries in parts, one a thread of the row: split before the loop, joined after it.
// What the ops in the loop do is the same for parts as for whole sums.
#include "lower/gpu/carried_sums.h"

#include "analysis/carried_sums.h"
#include "analysis/exchange.h"
#include "lower/gpu/deferred_reduction.h"
#include "lower/gpu/element_nest.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "ops/op.h"

namespace tilegen::lower {

namespace {

struct CarriedJoin {
  CarriedJoin(LoweringContext& k, const analysis::CarriedSums& sums)
      : reduction(*sums.reduction),
        tile_op(*k.in.program.as<ir::TileOp>(reduction.stmt)),
        iteration(*plan::find_op(k.in.schedule, reduction.path)->iteration),
        type(k.in.program.buffer(tile_op.operands[1].buffer).type),
        x(analysis::reduction_exchange(k.in.program, reduction, iteration,
                                       k.in.schedule.values[reduction.accesses[1].value.index()],
                                       k.in.target)),
        join(k, x, ir::ReduceKind::sum, type, iteration, ops::layout_rule(tile_op).reduction->axis,
             reduction.path) {}
  const analysis::KernelOp& reduction;
  const ir::TileOp& tile_op;
  const layout::Fragment& iteration;
  const ir::DType type;
  const analysis::ReductionExchange x;
  DeferredReduction join;
};

}  // namespace

void split_sums(LoweringContext& k, ir::StmtId loop, thread::Block& out) {
  ir::ExprPool& e = k.out.exprs;
  for (const analysis::CarriedSums& sums : k.in.scheduled.carried) {
    if (sums.loop != loop || sums.split.empty()) continue;
    CarriedJoin c(k, sums);
    const ExprId first = c.join.first_of_row(), zero = e.const_number(0, c.type);
    if (!first) continue;
    for (ValueId v : sums.split) {
      const FragmentView h = fragment_view(k, v);
      c.join.for_each_register(
          h.fragment->registers(),
          [&](ExprId r, thread::Block& body) {
            body.push_back(c.join.store(h.memory, r, e.select(first, c.join.load(h.memory, r), zero)));
          },
          out);
    }
  }
}

void join_sums(LoweringContext& k, ir::StmtId loop, thread::Block& out) {
  ir::ExprPool& e = k.out.exprs;
  for (const analysis::CarriedSums& sums : k.in.scheduled.carried) {
    if (sums.loop != loop) continue;
    CarriedJoin c(k, sums);
    if (c.x.through_scratch) c.join.begin_scratch();
    for (ValueId v : sums.joined) {
      const FragmentView h = fragment_view(k, v);
      c.join.combine_lanes(h.memory, h.fragment->registers(), out);
      if (!c.x.through_scratch) continue;
      auto number = [&](const Nest& nest) {
        ExprId n = e.const_int(0);
        for (size_t d = 0; d < nest.point.size(); ++d)
          n = e.add(e.mul(n, h.fragment->shape()[d]), nest.point[d]);
        return k.simplified(n);
      };
      const MemoryId sum = add_registers(k, "sum", c.type, 1);
      ExprId part;
      const ExprId writer = c.join.writer(&part);
      const Walk walk{*h.fragment, 1, c.reduction.path};
      emit_walk(
          k, walk,
          [&](const Nest& nest, thread::Block& body) {
            c.join.put(writer, part, number(nest), load_register(k, h, nest.point), nest, body);
          },
          out);
      emit_walk(
          k, walk,
          [&](const Nest& nest, thread::Block& body) {
            c.join.fetch(sum, number(nest), nest, body);
            store_register(k, h, nest.point, c.join.load(sum, e.const_int(0)), ExprId(), body,
                           c.reduction.path);
          },
          out);
    }
  }
}

}  // namespace tilegen::lower
