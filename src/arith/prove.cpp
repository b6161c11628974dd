#include "arith/prove.h"

#include <algorithm>

#include "arith/analyzer.h"
#include "support/small_set.h"

namespace tilegen::arith {

using ir::DType;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

bool prove(Context& ctx, ExprId condition) {
  Analyzer& an = ctx.analyzer();
  Analyzer::Question question(an);
  int64_t v = 0;
  return ir::is_bool(ctx.pool().type(condition)) && ctx.pool().is_const_int(an.simplify(condition), &v) &&
         v != 0;
}

Interval range_of(Context& ctx, ExprId e) {
  Analyzer& an = ctx.analyzer();
  Analyzer::Question question(an);
  return an.range(e);
}

int64_t divisor_of(Context& ctx, ExprId e) {
  if (ctx.pool().type(e) != DType::i64) return 1;
  Analyzer& an = ctx.analyzer();
  Analyzer::Question question(an);
  return an.divisor(an.linear(e));
}

namespace {

Affine as_affine(const Sum& s) {
  Affine a;
  a.constant = s.constant;
  for (const Term& t : s.terms) a.terms.emplace(t.atom, t.coeff);
  return a;
}

}  // namespace

std::optional<Affine> to_affine(Context& ctx, ExprId e) {
  if (ctx.pool().type(e) != DType::i64) return std::nullopt;
  Analyzer& an = ctx.analyzer();
  Analyzer::Question question(an);
  return as_affine(an.linear(e));
}

std::optional<Affine> exact_difference(Context& ctx, ExprId a, ExprId b) {
  if (ctx.pool().type(a) != DType::i64) return std::nullopt;
  Analyzer& an = ctx.analyzer();
  Analyzer::Question question(an);
  const Sum x = an.linear(a), y = an.linear(b);
  const std::optional<Sum> d = add_scaled(x, y, -1);
  if (!d || !an.is_exact(x) || !an.is_exact(y) || !an.is_exact(*d)) return std::nullopt;
  return as_affine(*d);
}

ExprId from_affine(Context& ctx, const Affine& a) {
  Sum s;
  s.constant = a.constant;
  for (const auto& [atom, coeff] : a.terms)
    if (coeff != 0) s.terms.push_back({atom, coeff});
  return ctx.analyzer().build(s);
}

std::optional<AffineSplit> split_affine(Context& ctx, ExprId e, ir::VarId var) {
  ir::ExprPool& pool = ctx.pool();
  if (pool.type(e) != DType::i64) return std::nullopt;
  Analyzer& an = ctx.analyzer();
  Analyzer::Question question(an);
  const ExprId x = pool.var(var);
  Sum s = an.linear(e);
  Sum rest = Sum::of_constant(s.constant), coefficient;
  for (const Term& t : s.terms) {
    if (!depends_on(pool, t.atom, var)) {
      rest.terms.push_back(t);
      continue;
    }
    std::vector<ExprId> factors = an.factors(t.atom);
    auto it = std::find(factors.begin(), factors.end(), x);
    if (it == factors.end()) return std::nullopt;
    factors.erase(it);
    for (ExprId f : factors)
      if (depends_on(pool, f, var)) return std::nullopt;
    Sum k = factors.empty() ? Sum::of_constant(1) : an.linear(an.product(std::move(factors)));
    std::optional<Sum> sum = add_scaled(coefficient, k, t.coeff);
    if (!sum) return std::nullopt;
    coefficient = std::move(*sum);
  }
  AffineSplit r;
  r.coefficient = an.build(coefficient);
  r.rest = an.build(rest);
  if (coefficient.is_constant()) r.stride = coefficient.constant;
  return r;
}

bool depends_on(const ir::ExprPool& pool, ExprId e, ir::VarId var) {
  SmallVector<ExprId, 32> open{e};
  SmallSet<ExprId, 32> seen;
  while (!open.empty()) {
    ExprId id = open.back();
    open.pop_back();
    if (!id.valid() || !seen.insert(id)) continue;
    const ExprNode& n = pool[id];
    if (n.op == ExprOp::var && n.var() == var) return true;
    for (ExprId operand : {n.a, n.b, n.c})
      if (operand.valid()) open.push_back(operand);
    if (n.op == ExprOp::load)
      for (ExprId i : pool.indices(id)) open.push_back(i);
  }
  return false;
}

}  // namespace tilegen::arith
