#include "lower/scheduled_lowering.h"

#include <utility>

namespace tilegen::lower {

void ScheduledLowering::run() {
  k_.declare_pipelines();
  if (k_.specialised()) return roles();
  for (const expand::Role& r : scheduled_.roles) lower(r.body, k_.out_.body);
}

void ScheduledLowering::lower(const expand::Block& b, thread::Block& out) {
  for (const expand::Stmt& s : b) {
    if (k_.failed()) return;
    std::visit([&](const auto& node) { lower(node, out); }, s.node);
  }
}

void ScheduledLowering::lower(const expand::Run& s, thread::Block& out) {
  k_.products_overwrite_ = s.overwrite;
  k_.operation(s.op, out);
  k_.products_overwrite_ = false;
}

// What goes on after the statement: a producer's tensor copies, products, copies into a commit group.
void ScheduledLowering::lower(const expand::Issue& s, thread::Block& out) {
  const analysis::KernelOp& op = *k_.op_of_.at(s.op);
  if (k_.role_ == expand::RoleKind::producer) {
    k_.begin_operation(s.op);
    k_.issue_tensor_copy(op, out);
    k_.current_ = nullptr;
    return;
  }
  const plan::OpPlan* plan = plan::find_op(k_.schedule_, op.path);
  bool& pending =
      plan && plan->engine == plan::Engine::warpgroup_mma ? k_.product_in_flight_ : k_.groups_closed_by_loop_;
  pending = true;
  k_.products_overwrite_ = s.overwrite;
  k_.operation(s.op, out);
  k_.products_overwrite_ = false;
  pending = false;
}

void ScheduledLowering::lower(const expand::Serial& s, thread::Block& out) {
  const auto& loop = *k_.p_.as<ir::Loop>(s.loop);
  const std::string& origin = k_.begin_operation(s.loop);
  const auto [begin, extent] = k_.loop_bounds(loop, out, origin);
  if (int64_t trips = 0; e_.is_const_int(extent, &trips) && trips <= 0) return;
  const VarId var = k_.out_.add_var(k_.p_.var(loop.vars[0]).name, ir::VarKind::loop);
  auto mark = k_.ctx_.mark();
  k_.bind_counter(var, extent);
  k_.ctx_.assume(e_.lt(e_.var(var), extent));
  k_.vars_[loop.vars[0]] = e_.add(begin, e_.var(var));
  const ExprId executions = k_.iteration_counts_;
  const bool fills = expand::fed_by_producer(scheduled_, s.loop);
  if (executions)
    k_.iteration_counts_ = k_.simplified(
        e_.add(fills ? k_.fillings_before(s.loop, extent) : k_.repeated(executions, extent), e_.var(var)));
  thread::Loop lowered{var, extent, thread::LoopForm::serial, {}};
  if (loop.kind == ir::LoopKind::unroll && e_.is_const_int(extent)) {
    lowered.form = thread::LoopForm::unrolled;
    k_.fixed_vars_.insert(var);
  }
  lower(s.body, lowered.body);
  k_.iteration_counts_ = executions;
  k_.ctx_.rollback(mark);
  out.push_back(k_.out_.add(std::move(lowered), origin));
  if (fills) k_.count_fillings(s.loop, extent, out);
}

void ScheduledLowering::lower(const expand::Branch& s, thread::Block& out) {
  const auto& branch = *k_.p_.as<ir::Branch>(s.branch);
  const std::string& origin = k_.begin_operation(s.branch);
  thread::Branch lowered{k_.simplified(k_.lower_expr(branch.condition)), {}, {}};
  auto mark = k_.ctx_.mark();
  if (!k_.reads_what_is_written(branch.condition, branch.then_body)) k_.ctx_.assume(lowered.condition);
  lower(s.then_body, lowered.then_body);
  k_.ctx_.rollback(mark);
  lower(s.else_body, lowered.else_body);
  out.push_back(k_.out_.add(std::move(lowered), origin));
}

}  // namespace tilegen::lower
