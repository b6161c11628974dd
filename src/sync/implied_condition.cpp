#include "sync/implied_condition.h"

#include <algorithm>
#include <optional>

#include "arith/prove.h"
#include "thread/index_program.h"

namespace tilegen::sync {

using ir::ExprId;
using ir::ExprOp;

namespace {

constexpr int64_t kLarge = int64_t{1} << 40;

bool is_of(const ir::ExprPool& pool, ExprId e, const std::function<bool(ir::VarId)>& known) {
  const thread::IndexProgram program(pool, e);
  return !program.reads_memory() && std::all_of(program.vars().begin(), program.vars().end(), known);
}

// lower + distance <= upper.
ExprId implied_order(arith::Context& ctx, ExprId lower, ExprId upper, int64_t distance,
                     const std::function<bool(ir::VarId)>& known) {
  const auto between = arith::exact_difference(ctx, upper, lower);
  if (!between || between->constant < -kLarge || between->constant > kLarge) return ExprId();
  arith::Affine told;
  told.constant = between->constant - distance;
  for (const auto& [atom, coefficient] : between->terms) {
    if (is_of(ctx.pool(), atom, known)) {
      told.terms[atom] = coefficient;
      continue;
    }
    const arith::Interval most = arith::interval_scale(arith::range_of(ctx, atom), coefficient);
    if (most.hi < -kLarge || most.hi > kLarge) return ExprId();
    told.constant += most.hi;
  }
  if (told.terms.empty()) return ExprId();
  return ctx.pool().le(ctx.pool().const_int(0), arith::from_affine(ctx, told));
}

}  // namespace

ExprId implied_condition(arith::Context& ctx, ExprId condition, const std::function<bool(ir::VarId)>& known) {
  if (!condition || is_of(ctx.pool(), condition, known)) return condition;
  ir::ExprNode n = ctx.pool()[condition];
  const bool negated = n.op == ExprOp::logical_not;
  if (negated) n = ctx.pool()[n.a];
  switch (n.op) {
    case ExprOp::logical_and: {
      if (negated) return ExprId();
      const ExprId a = implied_condition(ctx, n.a, known), b = implied_condition(ctx, n.b, known);
      return a && b ? ctx.pool().logical_and(a, b) : a ? a : b;
    }
    case ExprOp::lt:
      return negated ? implied_order(ctx, n.b, n.a, 0, known) : implied_order(ctx, n.a, n.b, 1, known);
    case ExprOp::le:
      return negated ? implied_order(ctx, n.b, n.a, 1, known) : implied_order(ctx, n.a, n.b, 0, known);
    default:
      return ExprId();
  }
}

}  // namespace tilegen::sync
