// What a producer begins before the kernel in front has ended: iterations of the block's first tile, whose
// uses of pipelines are the first ones.
#include "lower/gpu/grid.h"
#include "lower/gpu/tile_scheduler.h"
#include "lower/loop_bounds.h"
#include "lower/lowering_context.h"
#include "lower/scheduled_lowering.h"

namespace tilegen::lower {

void ScheduledLowering::lower(const expand::Preamble& s, thread::Block& out) {
  const auto& loop = *k_.in.program.as<ir::Loop>(s.loop);
  const std::string& origin = begin_operation(k_, s.loop);
  thread::Block body;
  const auto [begin, extent] = loop_bounds(k_, loop, body, origin);
  const ExprId count = k_.simplified(e_.binary(ir::ExprOp::min, extent, e_.const_int(s.iterations)));
  const VarId var = k_.out.add_var(k_.in.program.var(loop.vars[0]).name, ir::VarKind::loop);
  const auto mark = k_.ctx.mark();
  bind_counter(k_, var, count);
  k_.ctx.assume(e_.lt(e_.var(var), extent));
  k_.names.vars[loop.vars[0]] = e_.add(begin, e_.var(var));
  k_.role.iteration_counts = e_.var(var);
  thread::Loop lowered{var, count, thread::LoopForm::serial, {}};
  lower(s.body, lowered.body);
  k_.role.iteration_counts = ExprId();
  k_.ctx.rollback(mark);
  body.push_back(k_.out.add(std::move(lowered), origin));
  replace_block_indices(k_, body);
  if (k_.dynamic()) {
    body = k_.tile_scheduler->first_tile(std::move(body));
  } else if (k_.grid.tile_var.valid()) {
    const ExprId any = e_.binary(ir::ExprOp::min, tiles_of_block(), e_.const_int(1));
    thread::Loop first{k_.grid.tile_var, k_.simplified(any), thread::LoopForm::serial, std::move(body)};
    body = {k_.out.add(std::move(first), origin)};
  } else {
    body = {k_.out.add(thread::Branch{begins_with_the_launch(), std::move(body), {}}, origin)};
  }
  out.insert(out.end(), body.begin(), body.end());
}

// Later blocks have nothing to wait for, and begin sooner with their loads in the loop's order.
ExprId ScheduledLowering::begins_with_the_launch() {
  const plan::KernelSchedule& s = k_.in.schedule;
  const int64_t blocks = s.launch ? std::max<int64_t>(s.launch->min_blocks, 1) : 1;
  return e_.lt(e_.var(k_.out.block_vars[0]), e_.const_int(blocks * k_.in.target.multiprocessors));
}

void ScheduledLowering::lower(const expand::BehindPreamble& s, thread::Block& out) {
  const ExprId later = k_.grid.tile_var.valid() ? e_.lt(e_.const_int(0), e_.var(k_.grid.tile_var))
                                                : e_.unary(ir::ExprOp::logical_not, begins_with_the_launch());
  const ExprId behind = e_.binary(ir::ExprOp::logical_or, e_.le(e_.const_int(s.iterations), counter_), later);
  thread::Branch lowered{k_.simplified(behind), {}, {}};
  lower(s.body, lowered.then_body);
  emit(std::move(lowered), out);
}

}  // namespace tilegen::lower
