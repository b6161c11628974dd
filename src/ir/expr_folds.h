// The folding done when a node is made. A fold gives the value the evaluation rules give for every input:
// floats fold only where the identity is exact for -0, infinities and NaN.
#pragma once

#include <cmath>

#include "ir/expr.h"

namespace tilegen::ir {

// The value of a literal operand, in the form the identities ask about.
struct Literal {
  bool is_int = false;
  bool is_float = false;
  int64_t i = 0;
  double f = 0;

  explicit Literal(const ExprNode& n) {
    is_int = n.op == ExprOp::const_int;
    is_float = n.op == ExprOp::const_float;
    if (is_int) i = n.imm;
    if (is_float) f = n.float_value();
  }
  bool equals(int64_t v) const { return is_int && i == v; }
  bool is_one() const { return equals(1) || (is_float && f == 1.0); }
  bool is_minus_zero() const { return is_float && f == 0 && std::signbit(f); }
  bool is_plus_zero() const { return is_float && f == 0 && !std::signbit(f); }
  bool all_ones(DType t) const { return is_int && i == wrap_to(t, -1); }
};

// The constant a fold yields, an operand it yields, or nothing.
struct Fold {
  enum class Kind { none, left, right, integer } kind = Kind::none;
  int64_t value = 0;
};

// Identities with a literal on one side.
Fold fold_literal(ExprOp op, DType t, const Literal& a, const Literal& b);
// Identities of an operation on one value twice. `floating` is about the operands.
Fold fold_same(ExprOp op, bool floating);
// Every value of `from` is a value of `to`, and both are seen alike by any further cast. Widening an integer
// to a float is left out: the float saturates where the integer wraps.
bool widens(DType from, DType to);
bool is_idempotent(ExprOp op);

}  // namespace tilegen::ir
