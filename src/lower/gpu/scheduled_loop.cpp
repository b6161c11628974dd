// Pipelined loops: the iteration that statements of the scheduled program belong to decides the loop's
// variable, the slots that values mean, and how often what is counted has happened before.
#include <utility>

#include "arith/prove.h"
#include "lower/gpu/counts.h"
#include "lower/gpu/pipelines.h"
#include "lower/loop_bounds.h"
#include "lower/lowering_context.h"
#include "lower/operation.h"
#include "lower/scheduled_lowering.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

using expand::Iteration;
using expand::Transport;

void ScheduledLowering::lower(const expand::Pipelined& s, thread::Block& out) {
  LoopScope scope;
  scope.loop = k_.in.program.as<ir::Loop>(s.loop);
  scope.origin = begin_operation(k_, s.loop);
  const auto [begin, extent] = loop_bounds(k_, *scope.loop, out, scope.origin);
  scope.begin = begin;
  scope.extent = scope.end = extent;
  scope.fed = expand::fed_by_producer(scheduled_, s.loop);
  if (scope.fed)
    scope.filled = fillings_before(k_, s.loop, extent);
  else if (k_.role.iteration_counts)
    scope.filled = repeated(k_, k_.role.iteration_counts, extent);
  if (int64_t trips = 0; !scope.fed && e_.is_const_int(extent, &trips) && trips <= 0) return;
  const std::map<ValueId, ExprId> slots = k_.names.slots;
  LoopScope* const around = std::exchange(scope_, &scope);
  lower(s.body, out);
  scope_ = around;
  k_.names.slots = slots;
  if (scope.fed) count_fillings(k_, s.loop, extent, out);
}

ExprId ScheduledLowering::number_of(Iteration i) {
  if (i.from == Iteration::From::first) return e_.const_int(i.plus);
  const ExprId from = i.from == Iteration::From::newest ? scope_->newest : scope_->end;
  if (i.plus == 0) return from;
  return i.plus > 0 ? e_.add(from, i.plus) : e_.sub(from, e_.const_int(-i.plus));
}

void ScheduledLowering::enter(ExprId iteration) {
  const ExprId at = e_.add(scope_->begin, iteration);
  k_.names.vars[scope_->loop->vars[0]] = scope_->fed ? k_.simplified(at) : at;
  if (scope_->filled) k_.role.iteration_counts = k_.simplified(e_.add(scope_->filled, iteration));
  for (const PipelineBarriers& line : k_.role.pipelines) {
    if (!line.pipeline->loop.valid() || k_.in.program.as<ir::Loop>(line.pipeline->loop) != scope_->loop)
      continue;
    const ExprId slot =
        pipeline_slot(k_, line, expand::begins_anew(*line.pipeline) ? iteration : k_.role.iteration_counts);
    for (ValueId v : line.pipeline->values) {
      if (line.pipeline->transport == Transport::registers)
        k_.names.values[v] = registers_of(v, slot);
      else
        k_.names.slots[v] = slot;
    }
  }
}

// Registers have no address: the slot is known here.
MemoryId ScheduledLowering::registers_of(ValueId value, ExprId slot) {
  int64_t known = 0;
  if (!e_.is_const_int(slot, &known)) {
    k_.fail(DiagCode::internal_error, scope_->origin,
            "a slot of '" + k_.in.schedule.values[value.index()].value +
                "' in registers depends on the iteration",
            "report this program");
    return k_.names.values[value];
  }
  return k_.names.register_slots.at(value)[static_cast<size_t>(known)];
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
  auto mark = k_.ctx.mark();
  if (exists) k_.ctx.assume(exists);
  const std::map<ValueId, ExprId> slots = k_.names.slots;
  const IdVector<ValueId, MemoryId> values = k_.names.values;
  const ExprId executions = k_.role.iteration_counts;
  const ir::VarId var = scope_->loop->vars[0];
  const auto outer = k_.names.vars.find(var);
  const std::optional<ExprId> counter =
      outer == k_.names.vars.end() ? std::nullopt : std::optional<ExprId>(outer->second);
  enter(iteration);
  thread::Block inside;
  lower(s.body, exists ? inside : out);
  k_.names.slots = slots;
  k_.names.values = values;
  k_.role.iteration_counts = executions;
  if (counter) k_.names.vars[var] = *counter;
  k_.ctx.rollback(mark);
  if (exists && !inside.empty()) emit(thread::Branch{exists, std::move(inside), {}}, out);
}

ExprId ScheduledLowering::iterations_from(int64_t first) {
  return first == 0 ? scope_->extent : k_.simplified(e_.sub(scope_->extent, e_.const_int(first)));
}

void ScheduledLowering::lower(const expand::Steady& s, thread::Block& out) {
  ExprId trips = iterations_from(s.first);
  if (int64_t known = 0; s.first == 0 && e_.is_const_int(trips, &known) && known <= 0) return;
  if (s.step > 1) trips = k_.simplified(e_.floordiv(trips, e_.const_int(s.step)));
  const VarId var = k_.out.add_var(k_.in.program.var(scope_->loop->vars[0]).name, ir::VarKind::loop);
  thread::Loop lowered{var, trips, thread::LoopForm::serial, {}};
  auto mark = k_.ctx.mark();
  bind_counter(k_, var, trips);
  k_.ctx.assume(e_.lt(e_.var(var), trips));
  const ExprId number = s.step > 1 ? e_.mul(e_.var(var), s.step) : e_.var(var);
  const ExprId around = std::exchange(scope_->newest, s.first == 0 ? number : e_.add(number, s.first));
  lower(s.body, lowered.body);
  scope_->newest = around;
  k_.ctx.rollback(mark);
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
  if (arith::prove(k_.ctx, some)) return lower(s.then_body, out);
  if (e_.is_const_int(some, &known) && known == 0) return lower(s.else_body, out);
  thread::Branch branch{some, {}, {}};
  auto mark = k_.ctx.mark();
  k_.ctx.assume(some);
  lower(s.then_body, branch.then_body);
  k_.ctx.rollback(mark);
  lower(s.else_body, branch.else_body);
  if (branch.then_body.empty()) {
    branch.condition = k_.simplified(e_.le(scope_->extent, e_.const_int(s.least - 1)));
    std::swap(branch.then_body, branch.else_body);
  }
  emit(std::move(branch), out);
}

StagedGemm& ScheduledLowering::staged(ir::StmtId product) {
  std::unique_ptr<StagedGemm>& gemm = scope_->products[product];
  if (!gemm)
    gemm = std::make_unique<StagedGemm>(k_, *k_.in.op_of.at(product), *k_.in.program.as<ir::TileOp>(product));
  return *gemm;
}

// Products walk no points: there are no facts of them.
void ScheduledLowering::lower(const expand::LoadOperands& s, thread::Block& out) {
  if (!k_.facts) staged(s.product).first_step(out);
}

void ScheduledLowering::lower(const expand::Multiply& s, thread::Block& out) {
  thread::Block beside;
  lower(s.beside, beside);
  if (k_.facts) return lower(s.before_last, out);
  staged(s.product).steps(out, WorkBeside(k_, beside), [&] { lower(s.before_last, out); });
}

}  // namespace tilegen::lower
