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
  scope.extent = scope.end = extent;
  scope.fed = expand::fed_by_producer(scheduled_, s.loop);
  scope.before = k_.iteration_counts_;
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
  const ExprId from = i.from == Iteration::From::newest ? scope_->newest : scope_->end;
  if (i.plus == 0) return from;
  return i.plus > 0 ? e_.add(from, i.plus) : e_.sub(from, e_.const_int(-i.plus));
}

void ScheduledLowering::enter(ExprId iteration) {
  const ExprId at = e_.add(scope_->begin, iteration);
  k_.vars_[scope_->loop->vars[0]] = scope_->fed ? k_.simplified(at) : at;
  if (scope_->fed) k_.iteration_counts_ = k_.simplified(e_.add(scope_->filled, iteration));
  for (const PipelineBarriers& line : k_.pipelines_) {
    if (!line.pipeline->loop.valid() || k_.p_.as<ir::Loop>(line.pipeline->loop) != scope_->loop) continue;
    const bool anew = line.pipeline->transport == Transport::async_copy;
    const ExprId slot = k_.pipeline_slot(
        line, anew || line.pipeline->transport == Transport::registers ? iteration : k_.iteration_counts_);
    for (int v : line.pipeline->values) {
      if (line.pipeline->transport == Transport::registers)
        k_.values_[static_cast<size_t>(v)] = registers_of(v, slot);
      else
        k_.slots_[v] = slot;
    }
  }
}

// Registers have no address: the slot is known here.
MemoryId ScheduledLowering::registers_of(int value, ExprId slot) {
  int64_t known = 0;
  if (!e_.is_const_int(slot, &known)) {
    k_.fail(DiagCode::internal_error, scope_->origin,
            "a slot of '" + k_.schedule_.values[static_cast<size_t>(value)].value +
                "' in registers depends on the iteration",
            "report this program");
    return k_.values_[static_cast<size_t>(value)];
  }
  return k_.register_slots_.at(value)[static_cast<size_t>(known)];
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
  const std::vector<MemoryId> values = k_.values_;
  const ExprId executions = k_.iteration_counts_;
  const ir::VarId var = scope_->loop->vars[0];
  const auto outer = k_.vars_.find(var);
  const std::optional<ExprId> counter =
      outer == k_.vars_.end() ? std::nullopt : std::optional<ExprId>(outer->second);
  enter(iteration);
  thread::Block inside;
  lower(s.body, exists ? inside : out);
  k_.slots_ = slots;
  k_.values_ = values;
  k_.iteration_counts_ = executions;
  if (counter) k_.vars_[var] = *counter;
  k_.ctx_.rollback(mark);
  if (exists && !inside.empty()) emit(thread::Branch{exists, std::move(inside), {}}, out);
}

ExprId ScheduledLowering::iterations_from(int64_t first) {
  return first == 0 ? scope_->extent : k_.simplified(e_.sub(scope_->extent, e_.const_int(first)));
}

void ScheduledLowering::lower(const expand::Steady& s, thread::Block& out) {
  ExprId trips = iterations_from(s.first);
  if (int64_t known = 0; s.first == 0 && e_.is_const_int(trips, &known) && known <= 0) return;
  if (s.step > 1) trips = k_.simplified(e_.floordiv(trips, e_.const_int(s.step)));
  const VarId var = k_.out_.add_var(k_.p_.var(scope_->loop->vars[0]).name, ir::VarKind::loop);
  thread::Loop lowered{var, trips, thread::LoopForm::serial, {}};
  auto mark = k_.ctx_.mark();
  k_.bind_counter(var, trips);
  k_.ctx_.assume(e_.lt(e_.var(var), trips));
  const ExprId number = s.step > 1 ? e_.mul(e_.var(var), s.step) : e_.var(var);
  const ExprId around = std::exchange(scope_->newest, s.first == 0 ? number : e_.add(number, s.first));
  lower(s.body, lowered.body);
  scope_->newest = around;
  k_.ctx_.rollback(mark);
  emit(std::move(lowered), out);
}

// The number of iterations is a multiple of the step and what is left: which slots the last ones mean is
// known in each case.
void ScheduledLowering::lower(const expand::Remainder& s, thread::Block& out) {
  const auto step = static_cast<int64_t>(s.cases.size());
  const ExprId all = iterations_from(s.first), left = k_.simplified(e_.floormod(all, e_.const_int(step))),
               whole = k_.simplified(e_.floordiv(all, e_.const_int(step)));
  const auto lowered = [&](int64_t r) {
    thread::Block own;
    scope_->end = e_.add(e_.mul(whole, step), e_.const_int(s.first + r));
    lower(s.cases[static_cast<size_t>(r)], own);
    scope_->end = scope_->extent;
    return own;
  };
  int64_t known = 0;
  if (e_.is_const_int(left, &known)) {
    const thread::Block only = lowered(known);
    out.insert(out.end(), only.begin(), only.end());
    return;
  }
  thread::Block rest = lowered(step - 1);
  for (int64_t r = step - 1; r-- > 0;) {
    thread::Branch branch{e_.binary(ir::ExprOp::eq, left, e_.const_int(r)), lowered(r), std::move(rest)};
    rest.clear();
    emit(std::move(branch), rest);
  }
  out.insert(out.end(), rest.begin(), rest.end());
}

ExprId ScheduledLowering::any_iteration(int64_t least) {
  return k_.simplified(e_.lt(e_.const_int(least - 1), scope_->extent));
}

void ScheduledLowering::lower(const expand::WhereIterations& s, thread::Block& out) {
  const ExprId some = any_iteration(s.least);
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
    branch.condition = k_.simplified(e_.le(scope_->extent, e_.const_int(s.least - 1)));
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
