#include "ir/expr_folds.h"

namespace tilegen::ir {
namespace {

constexpr Fold kNoFold{};
constexpr Fold kLeft{Fold::Kind::left};
constexpr Fold kRight{Fold::Kind::right};
constexpr Fold constant(int64_t v) { return {Fold::Kind::integer, v}; }

}  // namespace

Fold fold_literal(ExprOp op, DType t, const Literal& a, const Literal& b) {
  switch (op) {
    case ExprOp::add:
      if (b.equals(0) || b.is_minus_zero()) return kLeft;
      if (a.equals(0) || a.is_minus_zero()) return kRight;
      break;
    case ExprOp::sub:
      if (b.equals(0) || b.is_plus_zero()) return kLeft;
      break;
    case ExprOp::mul:
      if (b.is_one()) return kLeft;
      if (a.is_one()) return kRight;
      if (a.equals(0) || b.equals(0)) return constant(0);
      break;
    case ExprOp::div:
      if (b.is_one()) return kLeft;
      break;
    case ExprOp::floordiv:
      if (b.equals(1)) return kLeft;
      if (a.equals(0) || b.equals(0)) return constant(0);
      break;
    case ExprOp::floormod:
      if (a.equals(0) || b.equals(0) || b.equals(1)) return constant(0);
      break;
    case ExprOp::bit_and:
    case ExprOp::logical_and:
      if (a.equals(0) || b.equals(0)) return constant(0);
      if (b.all_ones(t)) return kLeft;
      if (a.all_ones(t)) return kRight;
      break;
    case ExprOp::bit_or:
    case ExprOp::logical_or:
      if (b.all_ones(t) || a.equals(0)) return kRight;
      if (a.all_ones(t) || b.equals(0)) return kLeft;
      break;
    case ExprOp::bit_xor:
      if (b.equals(0)) return kLeft;
      if (a.equals(0)) return kRight;
      break;
    case ExprOp::shl:
    case ExprOp::shr:
      if (b.equals(0)) return kLeft;
      if (a.equals(0)) return constant(0);
      break;
    default:
      break;
  }
  return kNoFold;
}

Fold fold_same(ExprOp op, bool floating) {
  switch (op) {
    case ExprOp::min:
    case ExprOp::max:
    case ExprOp::bit_and:
    case ExprOp::bit_or:
    case ExprOp::logical_and:
    case ExprOp::logical_or:
      return kLeft;
    case ExprOp::lt:
      return constant(0);  // false for a NaN too
    case ExprOp::bit_xor:
      return constant(0);
    case ExprOp::sub:
    case ExprOp::floormod:
    case ExprOp::ne:
      return floating ? kNoFold : constant(0);
    case ExprOp::le:
    case ExprOp::eq:
      return floating ? kNoFold : constant(1);
    default:
      return kNoFold;
  }
}

bool widens(DType from, DType to) {
  if (from == to || is_bool(from)) return to != DType::e8m0 || from == to;
  if (is_float(from) && is_float(to))
    return to == DType::f64 || (to == DType::f32 && dtype_bits(from) < 32) ||
           (is_storage_only(from) && dtype_bits(to) == 16 && (from != DType::e8m0 || to == DType::bf16));
  if (!is_integer(from) || !is_integer(to)) return false;
  return dtype_bits(to) > dtype_bits(from) &&
         (dtype_kind(to) == DTypeKind::signed_int || dtype_kind(from) == DTypeKind::unsigned_int);
}

bool is_idempotent(ExprOp op) {
  switch (op) {
    case ExprOp::abs:
    case ExprOp::floor:
    case ExprOp::ceil:
    case ExprOp::round:
    case ExprOp::rint:
    case ExprOp::trunc:
      return true;
    default:
      return false;
  }
}

}  // namespace tilegen::ir
