// Sums that a loop carries in parts, one a thread of the row: split before the loop, joined after it.
// What the ops in the loop do is the same for parts as for whole sums.
#include "lower/gpu/deferred_reduction.h"
#include "ops/op.h"

namespace tilegen::lower {

struct KernelLowering::CarriedJoin {
  CarriedJoin(KernelLowering& k, const analysis::CarriedSums& sums)
      : reduction(*sums.reduction),
        tile_op(*k.p_.as<ir::TileOp>(reduction.stmt)),
        iteration(*plan::find_op(k.schedule_, reduction.path)->iteration),
        type(k.p_.buffer(tile_op.operands[1].buffer).type),
        x(analysis::reduction_exchange(k.p_, reduction, iteration,
                                       k.schedule_.values[static_cast<size_t>(reduction.accesses[1].value)],
                                       k.target_)),
        join(k, x, ir::ReduceKind::sum, type, iteration, ops::layout_rule(tile_op).reduction->axis,
             reduction.path) {}
  const analysis::KernelOp& reduction;
  const ir::TileOp& tile_op;
  const layout::Fragment& iteration;
  const ir::DType type;
  const analysis::ReductionExchange x;
  DeferredReduction join;
};

void KernelLowering::split_sums(ir::StmtId loop, thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  for (const analysis::CarriedSums& sums : scheduled_.carried) {
    if (sums.loop != loop || sums.split.empty()) continue;
    CarriedJoin c(*this, sums);
    const ExprId first = c.join.first_of_row(), zero = e.const_number(0, c.type);
    if (!first) continue;
    for (int v : sums.split) {
      const FragmentView h = held(v);
      c.join.for_each_register(
          h.fragment->registers(),
          [&](ExprId r, thread::Block& body) {
            body.push_back(c.join.store(h.memory, r, e.select(first, c.join.load(h.memory, r), zero)));
          },
          out);
    }
  }
}

void KernelLowering::join_sums(ir::StmtId loop, thread::Block& out) {
  ir::ExprPool& e = out_.exprs;
  for (const analysis::CarriedSums& sums : scheduled_.carried) {
    if (sums.loop != loop) continue;
    CarriedJoin c(*this, sums);
    if (c.x.through_scratch) c.join.begin_scratch();
    for (int v : sums.joined) {
      const FragmentView h = held(v);
      c.join.combine_lanes(h.memory, h.fragment->registers(), out);
      if (!c.x.through_scratch) continue;
      auto number = [&](const Nest& nest) {
        ExprId n = e.const_int(0);
        for (size_t d = 0; d < nest.point.size(); ++d)
          n = e.add(e.mul(n, h.fragment->shape()[d]), nest.point[d]);
        return simplified(n);
      };
      const MemoryId sum = add_registers("sum", c.type, 1);
      ExprId part;
      const ExprId writer = c.join.writer(&part);
      const Walk walk{*h.fragment, 1, c.reduction.path};
      emit_walk(
          walk,
          [&](const Nest& nest, thread::Block& body) {
            c.join.put(writer, part, number(nest), load_register(h, nest.point), nest, body);
          },
          out);
      emit_walk(
          walk,
          [&](const Nest& nest, thread::Block& body) {
            c.join.fetch(sum, number(nest), nest, body);
            store_register(h, nest.point, c.join.load(sum, e.const_int(0)), ExprId(), body, c.reduction.path);
          },
          out);
    }
  }
}

}  // namespace tilegen::lower
