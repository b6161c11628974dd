// One evaluation step: the numerics contract of ir/expr.h and ir/dtype.h, used by the folder and the
// interpreter.
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

#include "ir/expr.h"
#include "support/checked.h"

namespace tilegen::ir {
namespace {

ScalarValue from_int(DType t, int64_t v) { return {t, wrap_to(t, v), 0}; }
ScalarValue from_bool(bool v) { return {DType::boolean, v, 0}; }

// The sign and payload of a NaN made by arithmetic differ between machines; ours is always the same one.
double canonical_nan(double v) { return v == v ? v : std::numeric_limits<double>::quiet_NaN(); }

// An operation that IEEE defines exactly. Double holds twice the bits of f32 and more, so rounding its result
// to f32 is the f32 operation; the narrower types then round that.
ScalarValue from_exact(DType t, double v) {
  v = canonical_nan(v);
  if (t != DType::f64) v = round_to(DType::f32, v);
  return {t, 0, round_to(t, v)};
}

// A function without an exact form in the contract: rounded once from double.
ScalarValue from_function(DType t, double v) { return {t, 0, round_to(t, canonical_nan(v))}; }

uint64_t bits_of(int64_t v) { return static_cast<uint64_t>(v); }

double eval_function(ExprOp op, double x) {
  switch (op) {
    case ExprOp::exp:
      return std::exp(x);
    case ExprOp::exp2:
      return std::exp2(x);
    case ExprOp::log:
      return std::log(x);
    case ExprOp::log2:
      return std::log2(x);
    case ExprOp::rsqrt:
      return 1.0 / std::sqrt(x);
    case ExprOp::tanh:
      return std::tanh(x);
    case ExprOp::erf:
      return std::erf(x);
    case ExprOp::sigmoid:
      return 1.0 / (1.0 + std::exp(-x));
    default:
      assert(false && "not a function of one floating operand");
      return 0;
  }
}

ScalarValue eval_float_unary(ExprOp op, DType t, double x) {
  switch (op) {
    case ExprOp::neg:
      return {t, 0, -x};
    case ExprOp::abs:
      return {t, 0, std::fabs(x)};
    case ExprOp::floor:
      return from_exact(t, std::floor(x));
    case ExprOp::ceil:
      return from_exact(t, std::ceil(x));
    case ExprOp::sqrt:
      return from_exact(t, std::sqrt(x));
    default:
      return from_function(t, eval_function(op, x));
  }
}

// -0 counts as smaller than +0, so that the result does not depend on operand order.
double float_min(double a, double b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

bool compare(ExprOp op, ScalarValue a, ScalarValue b) {
  const bool floating = is_float(a.type);
  switch (op) {
    case ExprOp::lt:
      return floating ? a.f < b.f : a.i < b.i;
    case ExprOp::le:
      return floating ? a.f <= b.f : a.i <= b.i;
    case ExprOp::eq:
      return floating ? a.f == b.f : a.i == b.i;
    default:
      assert(op == ExprOp::ne);
      return floating ? a.f != b.f : a.i != b.i;
  }
}

ScalarValue eval_float_binary(ExprOp op, DType t, double a, double b) {
  switch (op) {
    case ExprOp::add:
      return from_exact(t, a + b);
    case ExprOp::sub:
      return from_exact(t, a - b);
    case ExprOp::mul:
      return from_exact(t, a * b);
    case ExprOp::div:
      return from_exact(t, a / b);
    case ExprOp::min:
      return from_exact(t, float_min(a, b));
    case ExprOp::max:
      return from_exact(t, -float_min(-a, -b));
    default:
      assert(false && "not an operation of two floating operands");
      return {t, 0, 0};
  }
}

// Sums and products are taken modulo 2^64 and then wrapped, which is the same as wrapping in the type.
ScalarValue eval_int_binary(ExprOp op, DType t, int64_t a, int64_t b) {
  const uint64_t shift = bits_of(b) & static_cast<uint64_t>(dtype_bits(t) - 1);
  switch (op) {
    case ExprOp::add:
      return from_int(t, static_cast<int64_t>(bits_of(a) + bits_of(b)));
    case ExprOp::sub:
      return from_int(t, static_cast<int64_t>(bits_of(a) - bits_of(b)));
    case ExprOp::mul:
      return from_int(t, static_cast<int64_t>(bits_of(a) * bits_of(b)));
    case ExprOp::floordiv:
      return from_int(t, floor_div(a, b));
    case ExprOp::floormod:
      return from_int(t, floor_mod(a, b));
    case ExprOp::min:
      return from_int(t, a < b ? a : b);
    case ExprOp::max:
      return from_int(t, a < b ? b : a);
    case ExprOp::bit_and:
    case ExprOp::logical_and:
      return from_int(t, a & b);
    case ExprOp::bit_or:
    case ExprOp::logical_or:
      return from_int(t, a | b);
    case ExprOp::bit_xor:
      return from_int(t, a ^ b);
    case ExprOp::shl:
      return from_int(t, static_cast<int64_t>(bits_of(a) << shift));
    case ExprOp::shr:
      return from_int(t, a >> shift);  // values of an unsigned type are never negative
    default:
      assert(false && "not an operation of two integer operands");
      return from_int(t, 0);
  }
}

}  // namespace

ScalarValue eval_unary(ExprOp op, DType result, ScalarValue a) {
  if (op == ExprOp::cast) return eval_cast(result, a);
  if (is_float(a.type)) return eval_float_unary(op, result, a.f);
  switch (op) {
    case ExprOp::neg:
      return from_int(result, static_cast<int64_t>(0 - bits_of(a.i)));
    case ExprOp::abs:
      return from_int(result, a.i < 0 ? static_cast<int64_t>(0 - bits_of(a.i)) : a.i);
    case ExprOp::bit_not:
      return from_int(result, ~a.i);
    case ExprOp::logical_not:
      return from_bool(a.i == 0);
    default:
      assert(false && "not an operation of one integer operand");
      return from_int(result, 0);
  }
}

ScalarValue eval_binary(ExprOp op, DType result, ScalarValue a, ScalarValue b) {
  if (expr_class(op) == ExprClass::compare) return from_bool(compare(op, a, b));
  return is_float(result) ? eval_float_binary(op, result, a.f, b.f) : eval_int_binary(op, result, a.i, b.i);
}

ScalarValue eval_cast(DType to, ScalarValue a) {
  if (to == a.type) return a;  // e5m2 keeps its infinities
  if (is_float(a.type)) {
    if (is_bool(to)) return from_bool(a.f != 0);
    if (is_float(to)) return {to, 0, round_to(to, a.f)};
    return {to, saturate_to(to, a.f), 0};
  }
  if (!is_float(to)) return from_int(to, a.i);
  // i64 is not exact in a double: go to f32 directly, from which the 16-bit types are rounded.
  if (to == DType::f64) return {to, 0, static_cast<double>(a.i)};
  return {to, 0, round_to(to, static_cast<double>(static_cast<float>(a.i)))};
}

}  // namespace tilegen::ir
