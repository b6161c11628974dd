// Pipelined loops: the iteration that statements of the scheduled program belong to decides the loop's
// variable, the slots that values mean, and how often what is counted has happened before.
#include <utility>

#include "lower/scheduled_lowering.h"

namespace tilegen::lower {

using expand::Iteration;
using expand::Transport;

void ScheduledLowering::lower(const expand::Pipelined& s, thread::Block& out) {
  LoopScope scope;
  scope.loop = k_.p_.as<ir::Loop>(s.loop);
  scope.origin = k_.begin_operation(s.loop);
  const auto [begin, extent] = k_.loop_bounds(*scope.loop, out, scope.origin);
  scope.begin = begin;
  scope.extent = extent;
  scope.fed = expand::fed_by_producer(scheduled_, s.loop);
  scope.before = k_.executions_;
  if (scope.fed) scope.filled = k_.fillings_before(s.loop, extent);
  if (int64_t trips = 0; !scope.fed && e_.is_const_int(extent, &trips) && trips <= 0) return;
  const std::map<int, ExprId> slots = k_.slots_;
  LoopScope* const around = std::exchange(scope_, &scope);
  lower(s.body, out);
  scope_ = around;
  k_.slots_ = slots;
  if (scope.fed) k_.count_fillings(s.loop, extent, out);
}

ExprId ScheduledLowering::number_of(Iteration i) {
  if (i.from == Iteration::From::first) return e_.const_int(i.plus);
  const ExprId from = i.from == Iteration::From::newest ? scope_->newest : scope_->extent;
  if (i.plus == 0) return from;
  return i.plus > 0 ? e_.add(from, i.plus) : e_.sub(from, e_.const_int(-i.plus));
}

void ScheduledLowering::enter(ExprId iteration) {
  const ExprId at = e_.add(scope_->begin, iteration);
  k_.vars_[scope_->loop->vars[0]] = scope_->fed ? k_.simplified(at) : at;
  if (scope_->fed) k_.executions_ = k_.simplified(e_.add(scope_->filled, iteration));
  for (const PipelineBarriers& line : k_.pipelines_) {
    if (!line.pipeline->loop.valid() || k_.p_.as<ir::Loop>(line.pipeline->loop) != scope_->loop) continue;
    const ExprId uses = line.pipeline->transport == Transport::async_copy ? iteration : k_.executions_;
    for (int v : line.pipeline->values) k_.slots_[v] = k_.pipeline_slot(line, uses);
  }
}

// Where the iteration may be none of the loop's, under the condition that it is.
void ScheduledLowering::lower(const expand::At& s, thread::Block& out) {
  const ExprId iteration = number_of(s.iteration);
  ExprId exists;
  int64_t known = 1;
  if (s.where_exists) {
    exists = k_.simplified(e_.lt(iteration, scope_->extent));
    const bool decided = e_.is_const_int(exists, &known);
    if (decided && known == 0) return;
    if (decided) exists = ExprId();
  }
  auto mark = k_.ctx_.mark();
  if (exists) k_.ctx_.assume(exists);
  const std::map<int, ExprId> slots = k_.slots_;
  const ExprId executions = k_.executions_;
  const ir::VarId var = scope_->loop->vars[0];
  const auto outer = k_.vars_.find(var);
  const std::optional<ExprId> counter =
      outer == k_.vars_.end() ? std::nullopt : std::optional<ExprId>(outer->second);
  enter(iteration);
  thread::Block inside;
  lower(s.body, exists ? inside : out);
  k_.slots_ = slots;
  k_.executions_ = executions;
  if (counter) k_.vars_[var] = *counter;
  k_.ctx_.rollback(mark);
  if (exists && !inside.empty()) emit(thread::Branch{exists, std::move(inside), {}}, out);
}

void ScheduledLowering::lower(const expand::Steady& s, thread::Block& out) {
  const ExprId trips =
      s.first == 0 ? scope_->extent : k_.simplified(e_.sub(scope_->extent, e_.const_int(s.first)));
  if (int64_t known = 0; s.first == 0 && e_.is_const_int(trips, &known) && known <= 0) return;
  const VarId var = k_.out_.add_var(k_.p_.var(scope_->loop->vars[0]).name, ir::VarKind::loop);
  thread::Loop lowered{var, trips, thread::LoopForm::serial, {}};
  auto mark = k_.ctx_.mark();
  k_.bind_counter(var, trips);
  k_.ctx_.assume(e_.lt(e_.var(var), trips));
  const ExprId around =
      std::exchange(scope_->newest, s.first == 0 ? e_.var(var) : e_.add(e_.var(var), s.first));
  lower(s.body, lowered.body);
  scope_->newest = around;
  k_.ctx_.rollback(mark);
  emit(std::move(lowered), out);
}

ExprId ScheduledLowering::any_iteration() { return k_.simplified(e_.lt(e_.const_int(0), scope_->extent)); }

void ScheduledLowering::lower(const expand::WhereAnyIteration& s, thread::Block& out) {
  const ExprId some = any_iteration();
  int64_t known = 1;
  if (arith::prove(k_.ctx_, some)) return lower(s.then_body, out);
  if (e_.is_const_int(some, &known) && known == 0) return lower(s.else_body, out);
  thread::Branch branch{some, {}, {}};
  auto mark = k_.ctx_.mark();
  k_.ctx_.assume(some);
  lower(s.then_body, branch.then_body);
  k_.ctx_.rollback(mark);
  lower(s.else_body, branch.else_body);
  if (branch.then_body.empty()) {
    branch.condition = k_.simplified(e_.le(scope_->extent, e_.const_int(0)));
    std::swap(branch.then_body, branch.else_body);
  }
  emit(std::move(branch), out);
}

StagedGemm& ScheduledLowering::staged(ir::StmtId product) {
  std::unique_ptr<StagedGemm>& gemm = scope_->products[product];
  if (!gemm) gemm = std::make_unique<StagedGemm>(k_, *k_.op_of_.at(product), *k_.p_.as<ir::TileOp>(product));
  return *gemm;
}

void ScheduledLowering::lower(const expand::LoadOperands& s, thread::Block& out) {
  staged(s.product).first_step(out);
}

void ScheduledLowering::lower(const expand::Multiply& s, thread::Block& out) {
  staged(s.product).steps(out, [&] { lower(s.before_last, out); });
}

}  // namespace tilegen::lower
