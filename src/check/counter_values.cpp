#include "check/counter_values.h"

#include <cstdlib>
#include <numeric>

namespace tilegen::check {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::VarId;

namespace {

constexpr int64_t kMaxPeriod = 4096;
constexpr int64_t kMaxBy = int64_t{1} << 31;

}  // namespace

void CounterValues::forget(VarId counter) {
  values_.erase(counter);
  untold_.erase(counter);
}

int64_t CounterValues::period(const std::vector<ExprId>& exprs, VarId counter) {
  int64_t period = 1;
  advances_.clear();
  for (ExprId e : exprs) {
    if (!e.valid()) continue;
    const auto own = advance(e, counter);
    const int64_t both = own && own->by == 0 ? std::lcm(period, own->period) : kMaxPeriod + 1;
    if (both > kMaxPeriod)
      untold_[counter].insert(e);
    else
      period = both;
  }
  return period;
}

std::optional<CounterValues::Advance> CounterValues::advance(ExprId e, VarId counter) {
  if (const auto known = advances_.find(e); known != advances_.end()) return known->second;
  return advances_[e] = find_advance(e, counter);
}

std::optional<CounterValues::Advance> CounterValues::find_advance(ExprId e, VarId counter) {
  const ExprNode n = p_.exprs[e];
  int64_t c = 0;
  if (n.op == ExprOp::var) return Advance{1, n.var() == counter ? 1 : 0};
  if (n.op == ExprOp::load || n.op == ExprOp::native_call) return std::nullopt;
  const int arity = ir::expr_arity(n.op);
  if (arity == 0) return Advance{};
  const auto a = advance(n.a, counter), b = arity > 1 ? advance(n.b, counter) : Advance{},
             third = arity > 2 ? advance(n.c, counter) : Advance{};
  if (!a || !b || !third) return std::nullopt;
  const int64_t period = std::lcm(std::lcm(a->period, b->period), third->period);
  if (period > kMaxPeriod) return std::nullopt;
  const int64_t by_a = a->by * (period / a->period), by_b = b->by * (period / b->period);
  if (std::abs(by_a) > kMaxBy || std::abs(by_b) > kMaxBy) return std::nullopt;
  if (by_a == 0 && by_b == 0 && third->by == 0) return Advance{period, 0};
  const bool index = n.type == ir::DType::i64;
  if (index && n.op == ExprOp::add) return Advance{period, by_a + by_b};
  if (index && n.op == ExprOp::sub) return Advance{period, by_a - by_b};
  if (!index || !p_.exprs.is_const_int(n.b, &c) || c <= 0 || c > kMaxPeriod) return std::nullopt;
  if (n.op == ExprOp::mul) return Advance{period, by_a * c};
  // After `times` periods the dividend has grown by a multiple of the divisor.
  const int64_t times = c / std::gcd(c, by_a);
  if (period * times > kMaxPeriod) return std::nullopt;
  if (n.op == ExprOp::floormod) return Advance{period * times, 0};
  if (n.op == ExprOp::floordiv) return Advance{period * times, by_a * times / c};
  return std::nullopt;
}

std::optional<int64_t> CounterValues::eval(ExprId e) {
  evaluated_.clear();
  const auto found = value(e);
  return found ? std::optional(found->i) : std::nullopt;
}

std::optional<ir::ScalarValue> CounterValues::value(ExprId e) {
  if (const auto known = evaluated_.find(e); known != evaluated_.end()) return known->second;
  if (const auto known = decided_.find(e); known != decided_.end())
    return ir::ScalarValue{ir::DType::boolean, known->second ? 1 : 0, 0};
  for (const auto& [counter, exprs] : untold_)
    if (exprs.contains(e)) return std::nullopt;
  return evaluated_[e] = find_value(e);
}

std::optional<ir::ScalarValue> CounterValues::find_value(ExprId e) {
  const ExprNode& n = p_.exprs[e];
  if (n.op == ExprOp::const_int) return ir::ScalarValue{n.type, n.imm, 0};
  if (n.op == ExprOp::var) {
    const auto known = values_.find(n.var());
    return known == values_.end() ? std::nullopt : std::optional(ir::ScalarValue{n.type, known->second, 0});
  }
  const int arity = ir::expr_arity(n.op);
  if (arity == 0 || n.op == ExprOp::native_call || ir::is_float(n.type)) return std::nullopt;
  const auto a = value(n.a);
  // One side decides.
  if (n.op == ExprOp::logical_and || n.op == ExprOp::logical_or) {
    const auto b = value(n.b);
    const bool decides = n.op == ExprOp::logical_or;
    for (const auto& side : {a, b})
      if (side && (side->i != 0) == decides) return side;
    return a && b ? a : std::nullopt;
  }
  if (!a || ir::is_float(a->type)) return std::nullopt;
  const auto b = arity > 1 ? value(n.b) : a, c = arity > 2 ? value(n.c) : a;
  if (!b || !c) return std::nullopt;
  return ir::eval_operation(n.op, n.type, *a, *b, *c);
}

}  // namespace tilegen::check
