#include "cost/sizes.h"

#include <algorithm>

namespace tilegen::cost {

namespace {

int64_t nominal(const ir::Var& dim) {
  const int64_t near = std::clamp(kNominalSize, dim.lower, dim.upper);
  const int64_t below = near / dim.divisor * dim.divisor;
  return below >= dim.lower ? below : std::min(dim.upper, below + dim.divisor);
}

}  // namespace

SizedProgram::SizedProgram(const ir::Program& p, const Sizes& sizes)
    : p_(p), values_(p.vars.size()), asked_(p.vars.size()) {
  for (size_t v = 0; v < p.vars.size(); ++v) {
    const ir::Var& var = p.vars[v];
    if (var.kind != ir::VarKind::dim && var.kind != ir::VarKind::scalar) continue;
    if (const auto given = sizes.find(var.name); given != sizes.end())
      values_[v] = given->second;
    else if (var.kind == ir::VarKind::dim)
      values_[v] = nominal(var);
  }
  // Of optional tensors all are passed.
  for (const ir::Param& param : p.params)
    if (p.is_presence(param) && !values_[param.var.value]) values_[param.var.value] = 1;
}

std::optional<int64_t> SizedProgram::value(ir::ExprId e) const {
  if (!e.valid()) return std::nullopt;
  const ir::ExprNode& n = p_.exprs[e];
  if (ir::is_float(n.type)) return std::nullopt;
  if (n.op == ir::ExprOp::const_int) return n.imm;
  if (n.op == ir::ExprOp::var) return of(n.var());
  if (n.op == ir::ExprOp::load) return std::nullopt;
  const auto operand = [&](ir::ExprId id) -> std::optional<ir::ScalarValue> {
    const auto v = value(id);
    if (!v) return std::nullopt;
    return ir::ScalarValue{p_.exprs.type(id), *v, 0};
  };
  if (n.op == ir::ExprOp::select) {
    const auto condition = value(n.a);
    if (!condition) return std::nullopt;
    return value(*condition != 0 ? n.b : n.c);
  }
  const auto a = operand(n.a);
  if (!a) return std::nullopt;
  if (n.op == ir::ExprOp::cast) return ir::eval_cast(n.type, *a).i;
  if (ir::expr_arity(n.op) == 1) return ir::eval_unary(n.op, n.type, *a).i;
  const auto b = operand(n.b);
  if (!b) return std::nullopt;
  const auto c = n.c.valid() ? operand(n.c) : a;
  if (!c) return std::nullopt;
  return ir::eval_operation(n.op, n.type, *a, *b, *c).i;
}

}  // namespace tilegen::cost
