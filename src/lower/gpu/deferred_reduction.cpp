#include "lower/gpu/deferred_reduction.h"

#include "lower/addressing.h"
#include "lower/gpu/iteration.h"
#include "lower/gpu/registers.h"
#include "lower/lowering_context.h"
#include "lower/reduction_math.h"

namespace tilegen::lower {

namespace {

constexpr int64_t kUnrolledParts = 16;  // partial results that are fetched without a loop

}  // namespace

void DeferredReduction::for_each_register(int64_t count, const EmitRegister& emit, thread::Block& out) {
  const VarId var = k_.out.add_var("r" + std::to_string(k_.out.vars.size()), ir::VarKind::loop);
  thread::Block body;
  emit(count == 1 ? e_.const_int(0) : e_.var(var), body);
  if (count > 1)
    body = {k_.out.add(thread::Loop{var, e_.const_int(count), thread::LoopForm::unrolled, std::move(body)},
                       path_)};
  out.insert(out.end(), body.begin(), body.end());
}

void DeferredReduction::combine_lanes(MemoryId parts, int64_t count, thread::Block& out) {
  if (x_.butterflies.empty()) return;
  const MemoryId other = add_registers(k_, "other", type_, 1);
  const ExprId zero = e_.const_int(0);
  for (int64_t mask : x_.butterflies)
    for_each_register(
        count,
        [&](ExprId r, thread::Block& body) {
          body.push_back(k_.out.add(thread::Shuffle{thread::Shuffle::Mode::butterfly, other, zero,
                                                    load(parts, r), e_.const_int(mask)},
                                    path_));
          body.push_back(store(parts, r, reduction_combine(e_, kind_, load(parts, r), load(other, zero))));
        },
        out);
}

ExprId DeferredReduction::first_of_row() {
  ExprId first;
  for (const auto& t : thread_digits(k_, iteration_).digits)
    if (t.digit.dim == axis_) first = both(k_, first, is_zero(t.value));
  return first;
}

ExprId DeferredReduction::writer(ExprId* part) {
  const ThreadDigits threads = thread_digits(k_, iteration_);
  ExprId writer = threads.reached;
  *part = e_.const_int(0);
  int64_t scale = 1;
  for (size_t i = threads.digits.size(); i-- > 0;) {
    const auto& t = threads.digits[i];
    if (t.digit.dim == layout::kReplica) writer = both(k_, writer, is_zero(t.value));
    if (t.digit.dim != axis_) continue;
    for (const auto& p : x_.partials) {
      if (p.digit.stride != t.digit.stride) continue;
      if (p.reached > 1) writer = both(k_, writer, is_zero(e_.floormod(t.value, e_.const_int(p.reached))));
      if (p.reached == p.digit.extent) continue;
      *part = e_.add(*part, e_.mul(e_.floordiv(t.value, e_.const_int(p.reached)), scale));
      scale *= p.digit.extent / p.reached;
    }
  }
  *part = k_.simplified(*part);
  return writer;
}

void DeferredReduction::put(ExprId writer, ExprId part, ExprId number, ExprId value, const Nest& nest,
                            thread::Block& body) {
  const ExprId at = k_.simplified(e_.add(e_.mul(part, x_.results), number));
  body.push_back(store(scratch_, at, value, both(k_, writer, both(k_, ExprId(), nest.inside))));
}

void DeferredReduction::fetch(MemoryId sum, ExprId number, const Nest& nest, thread::Block& body) {
  const ExprId zero = e_.const_int(0);
  auto part = [&](ExprId p) {
    std::vector<ExprId> operands = {k_.simplified(e_.add(e_.mul(p, x_.results), number))};
    if (const ExprId in = both(k_, ExprId(), nest.inside)) operands.push_back(in);
    return e_.load(scratch_, type_, operands);
  };
  body.push_back(store(sum, zero, part(zero)));
  if (x_.parts == 1) return;
  const VarId var = k_.out.add_var("p" + std::to_string(k_.out.vars.size()), ir::VarKind::loop);
  k_.ctx.bind(var, 0, x_.parts - 2);
  const thread::LoopForm form =
      x_.parts <= kUnrolledParts ? thread::LoopForm::unrolled : thread::LoopForm::serial;
  const ExprId next = reduction_combine(e_, kind_, load(sum, zero), part(e_.add(e_.var(var), 1)));
  body.push_back(
      k_.out.add(thread::Loop{var, e_.const_int(x_.parts - 1), form, {store(sum, zero, next)}}, path_));
}

}  // namespace tilegen::lower
