// Functions that executors may round otherwise, within the bounds of docs/numerics.md.
#pragma once

#include "ir/expr.h"

namespace tilegen::codegen::test {

inline bool is_rounded_function(ir::ExprOp op) {
  using ir::ExprOp;
  switch (op) {
    case ExprOp::exp:
    case ExprOp::exp2:
    case ExprOp::log:
    case ExprOp::log2:
    case ExprOp::rsqrt:
    case ExprOp::tanh:
    case ExprOp::erf:
    case ExprOp::sigmoid:
    case ExprOp::sin:
    case ExprOp::cos:
    case ExprOp::tan:
    case ExprOp::asin:
    case ExprOp::acos:
    case ExprOp::atan:
    case ExprOp::exp10:
    case ExprOp::expm1:
    case ExprOp::log1p:
    case ExprOp::cbrt:
    case ExprOp::erfc:
    case ExprOp::pow:
    case ExprOp::atan2:
      return true;
    default:
      return false;
  }
}

}  // namespace tilegen::codegen::test
