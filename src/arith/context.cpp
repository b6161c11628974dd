#include "arith/context.h"

#include <algorithm>

#include "arith/analyzer.h"
#include "arith/simplify.h"
#include "support/checked.h"

namespace tilegen::arith {

using ir::DType;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

Context::Context(ir::ExprPool& pool) : pool_(&pool), analyzer_(std::make_unique<Analyzer>(*this)) {}
Context::~Context() = default;

namespace {

// Ends moved to multiples of the divisor.
Interval to_multiples(Interval r, int64_t divisor) {
  if (divisor <= 1) return r;
  Interval t = r;
  if (t.lo != Interval::kMin) t.lo = checked_add(t.lo, floor_mod(-(t.lo % divisor), divisor)).value_or(t.lo);
  if (t.hi != Interval::kMax) t.hi = checked_sub(t.hi, floor_mod(t.hi, divisor)).value_or(t.hi);
  return t.lo <= t.hi ? t : r;
}

}  // namespace

void Context::bind(ir::VarId var, int64_t lo, int64_t hi, int64_t divisor) {
  VarFacts facts{{std::min(lo, hi), std::max(lo, hi)}, std::max<int64_t>(divisor, 1)};
  facts.range = to_multiples(facts.range, facts.divisor);
  undo_.push_back(UndoVar{var, facts_of(var)});
  vars_.insert_or_assign(var, facts);
  analyzer_->forget();
}

std::optional<VarFacts> Context::facts_of(ir::VarId var) const {
  auto it = vars_.find(var);
  return it == vars_.end() ? std::nullopt : std::optional<VarFacts>(it->second);
}

void Context::assume(ExprId condition) {
  ExprId simple = simplify(*this, condition);
  assume_simplified(simple, 0);
  if (simple != condition && !pool_->is_const(simple)) set_truth(condition, true);
  analyzer_->forget();
}

void Context::assume_simplified(ExprId condition, int depth) {
  const ExprNode n = (*pool_)[condition];
  if (pool_->is_const(condition) || depth > 64) return;
  if (n.op == ExprOp::logical_and) {
    assume_simplified(n.a, depth + 1);
    assume_simplified(n.b, depth + 1);
    return;
  }
  set_truth(condition, true);
  if (n.op == ExprOp::logical_not) set_truth(n.a, false);
  if (ir::expr_class(n.op) != ir::ExprClass::compare || pool_->type(n.a) != DType::i64) return;
  Analyzer::Question question(*analyzer_);
  std::optional<Sum> d = analyzer_->exact_difference(n.b, n.a);
  if (!d) return;
  if (n.op == ExprOp::le) add_linear(*d);
  if (n.op == ExprOp::lt)
    if (auto s = add_scaled(*d, Sum::of_constant(-1), 1)) add_linear(*s);
  if (n.op != ExprOp::eq) return;
  add_linear(*d);
  if (auto s = scaled(*d, -1)) add_linear(*s);
  // x % c == 0
  const ExprNode left = (*pool_)[n.a];
  int64_t c = 0, zero = 1;
  if (left.op == ExprOp::floormod && pool_->is_const_int(left.b, &c) && c > 0 &&
      pool_->is_const_int(n.b, &zero) && zero == 0) {
    Sum x = analyzer_->linear(left.a);
    if (x.terms.size() == 1 && x.terms[0].coeff == 1 && x.constant == 0) set_divisor(x.terms[0].atom, c);
  }
}

// Besides the fact itself, what it says about each of its atoms given the ranges of the others.
void Context::add_linear(const Sum& fact) {
  Sum s = analyzer_->tightened(fact);
  if (s.terms.empty()) return;
  linear_.push_back(s);
  undo_.push_back(UndoLinear{});
  std::vector<std::pair<ExprId, Interval>> found;
  for (const Term& t : s.terms) {
    std::optional<Sum> rest = add_scaled(s, Sum::of_atom(t.atom, t.coeff), -1);
    if (!rest) continue;
    int64_t most = analyzer_->sum_range(*rest).hi;  // coeff * atom >= -most
    if (most == Interval::kMax || most == Interval::kMin || t.coeff == INT64_MIN) continue;
    Interval b;
    if (t.coeff > 0) b.lo = ceil_div(-most, t.coeff);
    else b.hi = floor_div(most, -t.coeff);
    found.push_back({t.atom, b});
  }
  for (auto& [atom, b] : found) set_bounds(atom, b);
}

void Context::set_bounds(ExprId atom, Interval bounds) {
  auto it = bounds_.find(atom);
  std::optional<Interval> before = it == bounds_.end() ? std::nullopt : std::optional<Interval>(it->second);
  undo_.push_back(UndoBounds{atom, before});
  bounds_.insert_or_assign(atom, before ? intersect(*before, bounds) : bounds);
}

void Context::set_divisor(ExprId atom, int64_t divisor) {
  auto it = divisors_.find(atom);
  std::optional<int64_t> before = it == divisors_.end() ? std::nullopt : std::optional<int64_t>(it->second);
  undo_.push_back(UndoDivisor{atom, before});
  divisors_.insert_or_assign(atom, before ? std::max(*before, divisor) : divisor);
}

void Context::set_truth(ExprId condition, bool value) {
  if (!truths_.emplace(condition, value).second) return;
  undo_.push_back(UndoTruth{condition});
}

void Context::rollback(Mark mark) {
  if (undo_.size() <= mark) return;
  while (undo_.size() > mark) {
    undo(undo_.back());
    undo_.pop_back();
  }
  analyzer_->forget();
}

namespace {

template <class Map, class Key, class Value>
void restore(Map& map, const Key& key, const std::optional<Value>& before) {
  if (before) map.insert_or_assign(key, *before);
  else map.erase(key);
}

}  // namespace

void Context::undo(const Undo& entry) {
  if (auto* u = std::get_if<UndoVar>(&entry)) restore(vars_, u->var, u->before);
  if (std::get_if<UndoLinear>(&entry)) linear_.pop_back();
  if (auto* u = std::get_if<UndoBounds>(&entry)) restore(bounds_, u->atom, u->before);
  if (auto* u = std::get_if<UndoDivisor>(&entry)) restore(divisors_, u->atom, u->before);
  if (auto* u = std::get_if<UndoTruth>(&entry)) truths_.erase(u->condition);
}

}  // namespace tilegen::arith
