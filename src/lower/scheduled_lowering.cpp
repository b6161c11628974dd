#include "lower/scheduled_lowering.h"

#include <utility>

#include "lower/addressing.h"
#include "lower/gpu/bulk_copies.h"
#include "lower/gpu/counts.h"
#include "lower/gpu/pipelines.h"
#include "lower/loop_bounds.h"
#include "lower/lowering_context.h"

namespace tilegen::lower {

void ScheduledLowering::run() {
  declare_pipelines(k_);
  if (k_.specialised()) return roles();
  for (const expand::Role& r : scheduled_.roles) lower(r.body, k_.out.body);
}

void ScheduledLowering::lower(const expand::Block& b, thread::Block& out) {
  for (const expand::Stmt& s : b) {
    if (k_.failed()) return;
    std::visit([&](const auto& node) { lower(node, out); }, s.node);
  }
}

// A producer's tensor copy, or an operation that goes on after the statement.
void ScheduledLowering::lower(const expand::Issue& s, thread::Block& out) {
  if (k_.role.kind != expand::RoleKind::producer) return lower_operation(k_, s, out);
  begin_operation(k_, s.op);
  issue_tensor_copy(k_, *k_.at.op, s.part, out);
  k_.at.op = nullptr;
}

void ScheduledLowering::lower(const expand::Serial& s, thread::Block& out) {
  const auto& loop = *k_.in.program.as<ir::Loop>(s.loop);
  const std::string& origin = begin_operation(k_, s.loop);
  const auto [begin, extent] = loop_bounds(k_, loop, out, origin);
  if (int64_t trips = 0; e_.is_const_int(extent, &trips) && trips <= 0) return;
  const VarId var = k_.out.add_var(k_.in.program.var(loop.vars[0]).name, ir::VarKind::loop);
  auto mark = k_.ctx.mark();
  bind_counter(k_, var, extent);
  k_.ctx.assume(e_.lt(e_.var(var), extent));
  k_.names.vars[loop.vars[0]] = e_.add(begin, e_.var(var));
  const ExprId executions = k_.role.iteration_counts;
  const bool fills = expand::fed_by_producer(scheduled_, s.loop);
  if (executions)
    k_.role.iteration_counts = k_.simplified(
        e_.add(fills ? fillings_before(k_, s.loop, extent) : repeated(k_, executions, extent), e_.var(var)));
  thread::Loop lowered{var, extent, thread::LoopForm::serial, {}};
  if (loop.kind == ir::LoopKind::unroll && e_.is_const_int(extent)) {
    lowered.form = thread::LoopForm::unrolled;
    k_.walk.fixed_vars.insert(var);
  }
  if (loop.condition.valid()) lowered.condition = lower_expr(k_, loop.condition);
  const ExprId around = std::exchange(counter_, e_.var(var));
  lower(s.body, lowered.body);
  counter_ = around;
  k_.role.iteration_counts = executions;
  k_.ctx.rollback(mark);
  out.push_back(k_.out.add(std::move(lowered), origin));
  note_bulk_copy(k_, s.loop, out.back());
  if (fills) count_fillings(k_, s.loop, extent, out);
}

void ScheduledLowering::lower(const expand::Branch& s, thread::Block& out) {
  const auto& branch = *k_.in.program.as<ir::Branch>(s.branch);
  const std::string& origin = begin_operation(k_, s.branch);
  thread::Branch lowered{k_.simplified(lower_expr(k_, branch.condition)), {}, {}};
  auto mark = k_.ctx.mark();
  if (!reads_what_is_written(k_, branch.condition, branch.then_body)) k_.ctx.assume(lowered.condition);
  lower(s.then_body, lowered.then_body);
  k_.ctx.rollback(mark);
  lower(s.else_body, lowered.else_body);
  out.push_back(k_.out.add(std::move(lowered), origin));
}

}  // namespace tilegen::lower
