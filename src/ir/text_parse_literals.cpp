// Literals without a type, and what is computed of such alone: `x * (1 / 3.0)`, `Y[i] = select(c, 1, 0) | 4`.
// They have the type of the values beside them, else of what they are stored to, else i64.
#include <algorithm>
#include <optional>
#include <utility>

#include "ir/text_parser.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::ir::text {
namespace {

// Its result has the type of its operands, of which its value does not depend.
bool keeps_type(ExprOp op) {
  if (op == ExprOp::popcount || op == ExprOp::clz || op == ExprOp::ctz || op == ExprOp::mulhi) return false;
  const ExprClass cls = expr_class(op);
  return cls == ExprClass::arith || cls == ExprClass::integer || cls == ExprClass::math;
}

}  // namespace

bool Parser::is_of_literals(ExprOp op, std::span<const Operand> operands) {
  if (static_cast<int>(operands.size()) != expr_arity(op)) return false;
  const bool chooses = op == ExprOp::select;
  if (chooses ? operands.front().untyped : !keeps_type(op)) return false;
  const auto values = operands.subspan(chooses ? 1 : 0);
  return std::all_of(values.begin(), values.end(), [](const Operand& o) { return o.untyped; });
}

Parser::Operand Parser::computed(ExprOp op, std::span<const Operand> operands, const Token& at) {
  Operand value{ExprId(), true, {}};
  LiteralStep last{at, op};
  for (const Operand& o : operands) {
    if (o.untyped)
      value.steps.insert(value.steps.end(), o.steps.begin(), o.steps.end());
    else
      last.condition = o.id;
  }
  value.steps.push_back(last);
  return value;
}

// Some of it is no integer.
bool Parser::is_real(const Operand& o) {
  return std::any_of(o.steps.begin(), o.steps.end(), [](const LiteralStep& s) {
    return s.op == ExprOp::const_int && (s.at.fractional || s.at.kind == TokenKind::name);
  });
}

// Literals are numbers: what they come to is one of the type.
void Parser::check_fits(const LiteralStep& s, ExprId a, ExprId b, ExprId value) {
  const ExprPool& e = program_.exprs;
  int64_t x = 0, y = 0, v = 0;
  if (!e.is_const_int(a, &x) || !e.is_const_int(b, &y) || !e.is_const_int(value, &v)) return;
  std::optional<int64_t> exact = v;
  if (s.op == ExprOp::add) exact = checked_add(x, y);
  if (s.op == ExprOp::sub) exact = checked_sub(x, y);
  if (s.op == ExprOp::mul) exact = checked_mul(x, y);
  const DType type = e.type(value);
  if (type == DType::u64 ? s.op == ExprOp::sub && x >= 0 && v < 0 : exact != v)
    error(DiagCode::syntax_error, s.at,
          "what " + describe(s.at) + " makes of its literals does not fit " + dtype_name(type),
          "write the type of one of them where it is meant to wrap, or compute in another type and cast");
}

// The type that the values among the operands have, where they agree.
DType Parser::context_of(std::span<const Operand> operands) const {
  DType context = DType::none;
  for (const Operand& o : operands) {
    if (o.untyped || !o.id.valid()) continue;
    const DType t = program_.exprs.type(o.id);
    if (context != DType::none && t != context) return DType::none;
    context = t;
  }
  return context;
}

ExprId Parser::typed(const Operand& o, DType context) {
  if (!o.untyped) return o.id;
  std::vector<ExprId> values;
  const auto taken = [&] {
    const ExprId value = values.back();
    values.pop_back();
    return value;
  };
  for (const LiteralStep& s : o.steps) {
    if (s.op == ExprOp::const_int) {
      values.push_back(make_literal(s.at, s.negative, context));
      continue;
    }
    const ExprId last = taken();
    if (s.op == ExprOp::select) {
      values.back() = make_ternary(s.op, s.condition, values.back(), last, s.at);
    } else if (expr_arity(s.op) == 1) {
      values.push_back(make_unary(s.op, last, s.at));
    } else if (expr_arity(s.op) == 2) {
      const ExprId first = std::exchange(values.back(), make_binary(s.op, values.back(), last, s.at));
      if (values.back().valid()) check_fits(s, first, last, values.back());
    } else {
      const ExprId middle = taken();
      values.back() = make_ternary(s.op, values.back(), middle, last, s.at);
    }
  }
  return values.back();
}

}  // namespace tilegen::ir::text
