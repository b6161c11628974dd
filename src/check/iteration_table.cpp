#include "check/iteration_table.h"

#include <algorithm>

#include "support/checked.h"

namespace tilegen::check {

using arith::Sum;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

namespace {
constexpr int64_t kMaxEvaluations = 1 << 23;
constexpr uint32_t kIterationsBetweenLooks = 64;
}  // namespace

IterationTable::IterationTable(const ir::Program& p, IndexForms& forms, Scratch& scratch,
                               const ir::Loop& loop)
    : p_(p), forms_(forms), scratch_(scratch), loop_(loop), point_(loop.vars.size(), 0) {
  for (ExprId e : loop.extents) {
    int64_t extent = 0;
    p.exprs.is_const_int(e, &extent);
    extents_.push_back(extent);
    iterations_ = checked_mul(iterations_, extent).value_or(INT64_MAX);
  }
}

bool IterationTable::is_loop_var(const ExprNode& n) const {
  return n.op == ExprOp::var && std::find(loop_.vars.begin(), loop_.vars.end(), n.var()) != loop_.vars.end();
}

bool IterationTable::depends_on_loop(ExprId e) const {
  bool depends = false;
  scratch_.walk.start();
  scratch_.walk.visit(e, [&](ExprId, const ExprNode& n) { depends |= is_loop_var(n); });
  return depends;
}

std::vector<Sum> IterationTable::fixed_part(const Access& access) {
  std::vector<Sum> fixed;
  for (ExprId e : access.indices) {
    Sum part;
    for (const arith::Term& t : forms_.linear(e).terms)
      if (!depends_on_loop(t.atom)) part.terms.push_back(t);
    fixed.push_back(std::move(part));
  }
  return fixed;
}

bool IterationTable::has_fixed_part(const Access& access) {
  const std::vector<Sum> fixed = fixed_part(access);
  return std::any_of(fixed.begin(), fixed.end(), [](const Sum& s) { return !s.terms.empty(); });
}

// Nodes in ascending order are in evaluation order. False when a leaf is neither a constant nor a loop
// variable.
bool IterationTable::collect(ExprId e, std::vector<ExprId>* order) const {
  bool closed = true;
  scratch_.walk.start();
  scratch_.walk.visit(e, [&](ExprId id, const ExprNode& n) {
    closed &= n.op != ExprOp::load && (n.op != ExprOp::var || is_loop_var(n));
    order->push_back(id);
  });
  return closed;
}

void IterationTable::evaluate(const std::vector<ExprId>& order) {
  std::vector<ir::ScalarValue>& values = scratch_.values;
  for (ExprId id : order) {
    const ExprNode& n = p_.exprs[id];
    ir::ScalarValue& v = values[id.value];
    switch (n.op) {
      case ExprOp::const_int:
        v = {n.type, n.imm, 0};
        break;
      case ExprOp::const_float:
        v = {n.type, 0, n.float_value()};
        break;
      case ExprOp::var: {
        const auto at = std::find(loop_.vars.begin(), loop_.vars.end(), n.var()) - loop_.vars.begin();
        v = {n.type, point_[at], 0};
        break;
      }
      default: {
        const auto operand = [&](ExprId e) { return e.valid() ? values[e.value] : ir::ScalarValue(); };
        v = ir::eval_operation(n.op, n.type, operand(n.a), operand(n.b), operand(n.c));
      }
    }
  }
}

bool IterationTable::advance() {
  size_t d = point_.size();
  while (d > 0 && ++point_[d - 1] == extents_[d - 1]) point_[--d] = 0;
  return d > 0;
}

std::optional<std::vector<TouchedElement>> IterationTable::touched(const Access& access) {
  if (iterations_ > kMaxEnumeratedIterations || access.indices.size() > kMaxEnumeratedRank)
    return std::nullopt;
  std::vector<ExprId> order;
  std::vector<Sum> sums;  // per dimension: the terms that change inside the loop
  for (ExprId e : access.indices) {
    Sum changing{{}, forms_.linear(e).constant};
    for (const arith::Term& t : forms_.linear(e).terms) {
      if (!depends_on_loop(t.atom)) continue;
      if (!collect(t.atom, &order)) return std::nullopt;
      changing.terms.push_back(t);
    }
    sums.push_back(std::move(changing));
  }
  std::vector<Condition> conditions;
  for (const Condition& c : access.conditions) {
    if (!depends_on_loop(c.expr)) continue;
    if (!collect(c.expr, &order)) return std::nullopt;
    conditions.push_back(c);
  }
  std::sort(order.begin(), order.end());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  if (iterations_ * static_cast<int64_t>(order.size()) > kMaxEvaluations) return std::nullopt;

  const std::vector<ir::ScalarValue>& values = scratch_.values;
  std::vector<TouchedElement> elements;
  std::fill(point_.begin(), point_.end(), 0);
  uint32_t iteration = 0;
  do {
    if (iteration % kIterationsBetweenLooks == 0 && scratch_.stop()) return std::nullopt;
    evaluate(order);
    TouchedElement touched;
    touched.iteration = iteration++;
    const bool runs = std::all_of(conditions.begin(), conditions.end(), [&](const Condition& c) {
      return (values[c.expr.value].i != 0) == c.holds;
    });
    if (!runs) continue;
    for (size_t d = 0; d < sums.size(); ++d) {
      uint64_t at = static_cast<uint64_t>(sums[d].constant);
      for (const arith::Term& t : sums[d].terms)
        at += static_cast<uint64_t>(t.coeff) * static_cast<uint64_t>(values[t.atom.value].i);
      touched.index[d] = static_cast<int64_t>(at);
    }
    elements.push_back(touched);
  } while (advance());
  std::sort(elements.begin(), elements.end());
  return elements;
}

std::string IterationTable::iteration_text(uint32_t iteration) const {
  std::vector<std::string> parts(loop_.vars.size());
  int64_t rest = iteration;
  for (size_t d = loop_.vars.size(); d-- > 0;) {
    parts[d] = p_.var(loop_.vars[d]).name + "=" + std::to_string(rest % extents_[d]);
    rest /= extents_[d];
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

}  // namespace tilegen::check
