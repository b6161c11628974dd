// One evaluation step: the numerics contract of ir/expr.h and ir/dtype.h, used by the folder and the
// interpreter.
#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>

#include "ir/expr.h"
#include "ir/philox.h"
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

// pow(10, x) is right to the last place wherever 10^x is a number.
double exp10_of(double x) { return std::pow(10.0, x); }

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
    case ExprOp::sin:
      return std::sin(x);
    case ExprOp::cos:
      return std::cos(x);
    case ExprOp::tan:
      return std::tan(x);
    case ExprOp::asin:
      return std::asin(x);
    case ExprOp::acos:
      return std::acos(x);
    case ExprOp::atan:
      return std::atan(x);
    case ExprOp::exp10:
      return exp10_of(x);
    case ExprOp::expm1:
      return std::expm1(x);
    case ExprOp::log1p:
      return std::log1p(x);
    case ExprOp::cbrt:
      return std::cbrt(x);
    case ExprOp::erfc:
      return std::erfc(x);
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
    case ExprOp::round:
      return from_exact(t, std::round(x));
    case ExprOp::rint:
      return from_exact(t, std::nearbyint(x));
    case ExprOp::trunc:
      return from_exact(t, std::trunc(x));
    case ExprOp::isnan:
      return from_bool(std::isnan(x));
    case ExprOp::isinf:
      return from_bool(std::isinf(x));
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

bool less(DType t, int64_t a, int64_t b) { return is_u64(t) ? bits_of(a) < bits_of(b) : a < b; }

bool compare(ExprOp op, ScalarValue a, ScalarValue b) {
  const bool floating = is_float(a.type);
  switch (op) {
    case ExprOp::lt:
      return floating ? a.f < b.f : less(a.type, a.i, b.i);
    case ExprOp::le:
      return floating ? a.f <= b.f : !less(a.type, b.i, a.i);
    case ExprOp::eq:
      return floating ? a.f == b.f : a.i == b.i;
    default:
      assert(op == ExprOp::ne);
      return floating ? a.f != b.f : a.i != b.i;
  }
}

// The bits of a value, as wide as its type.
uint64_t own_bits(DType t, int64_t v) { return bits_of(v) & (~uint64_t{0} >> (64 - dtype_bits(t))); }

int64_t eval_mulhi(DType t, int64_t a, int64_t b) {
  if (is_u64(t)) return static_cast<int64_t>((static_cast<unsigned __int128>(bits_of(a)) * bits_of(b)) >> 64);
  return static_cast<int64_t>((static_cast<__int128>(a) * b) >> dtype_bits(t));
}

int64_t eval_bit_count(ExprOp op, DType t, int64_t v) {
  const uint64_t own = own_bits(t, v);
  switch (op) {
    case ExprOp::popcount:
      return std::popcount(own);
    case ExprOp::clz:
      return std::countl_zero(own) - (64 - dtype_bits(t));
    default:
      return std::min(std::countr_zero(own), dtype_bits(t));
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
    case ExprOp::pow:
      // libm takes a signaling NaN for undefined even here
      return from_function(t, a == 1 || b == 0 ? 1.0 : std::pow(a, b));
    case ExprOp::atan2:
      return from_function(t, std::atan2(a, b));
    case ExprOp::fmod:
      return from_exact(t, std::fmod(a, b));
    case ExprOp::copysign:
      return {t, 0, std::copysign(a, b)};
    default:
      assert(false && "not an operation of two floating operands");
      return {t, 0, 0};
  }
}

// A zero divisor gives 0.
int64_t eval_division(ExprOp op, DType t, int64_t a, int64_t b) {
  const bool quotient = op == ExprOp::floordiv;
  if (!is_u64(t)) return quotient ? floor_div(a, b) : floor_mod(a, b);
  if (b == 0) return 0;
  return static_cast<int64_t>(quotient ? bits_of(a) / bits_of(b) : bits_of(a) % bits_of(b));
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
    case ExprOp::floormod:
      return from_int(t, eval_division(op, t, a, b));
    case ExprOp::min:
      return from_int(t, less(t, a, b) ? a : b);
    case ExprOp::max:
      return from_int(t, less(t, a, b) ? b : a);
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
    case ExprOp::mulhi:
      return from_int(t, eval_mulhi(t, a, b));
    case ExprOp::shr:
      if (is_u64(t)) return from_int(t, static_cast<int64_t>(bits_of(a) >> shift));
      return from_int(t, a >> shift);  // values of a narrower unsigned type are never negative
    default:
      assert(false && "not an operation of two integer operands");
      return from_int(t, 0);
  }
}

}  // namespace

ScalarValue eval_unary(ExprOp op, DType result, ScalarValue a) {
  if (op == ExprOp::cast) return eval_cast(result, a);
  if (op == ExprOp::bitcast) return eval_bitcast(result, a);
  if (is_float(a.type)) return eval_float_unary(op, result, a.f);
  switch (op) {
    case ExprOp::neg:
      return from_int(result, static_cast<int64_t>(0 - bits_of(a.i)));
    case ExprOp::abs:
      return from_int(result, less(result, a.i, 0) ? static_cast<int64_t>(0 - bits_of(a.i)) : a.i);
    case ExprOp::bit_not:
      return from_int(result, ~a.i);
    case ExprOp::popcount:
    case ExprOp::clz:
    case ExprOp::ctz:
      return from_int(result, eval_bit_count(op, a.type, a.i));
    case ExprOp::logical_not:
      return from_bool(a.i == 0);
    default:
      assert(false && "not an operation of one integer operand");
      return from_int(result, 0);
  }
}

ScalarValue eval_binary(ExprOp op, DType result, ScalarValue a, ScalarValue b) {
  if (expr_class(op) == ExprClass::compare) return from_bool(compare(op, a, b));
  if (expr_class(op) == ExprClass::native) return a;
  return is_float(result) ? eval_float_binary(op, result, a.f, b.f) : eval_int_binary(op, result, a.i, b.i);
}

// f16 and bf16: the f32 operation, rounded once more.
ScalarValue eval_ternary(ExprOp op, DType result, ScalarValue a, ScalarValue b, ScalarValue c) {
  if (op == ExprOp::select) return a.i != 0 ? b : c;
  if (op == ExprOp::native_call) return a;
  if (op == ExprOp::philox) return from_int(result, philox_word(bits_of(a.i), bits_of(b.i), bits_of(c.i)));
  assert(op == ExprOp::fma);
  if (result == DType::f64) return {result, 0, canonical_nan(std::fma(a.f, b.f, c.f))};
  const float once = std::fma(static_cast<float>(a.f), static_cast<float>(b.f), static_cast<float>(c.f));
  return from_exact(result, static_cast<double>(once));
}

ScalarValue eval_operation(ExprOp op, DType result, ScalarValue a, ScalarValue b, ScalarValue c) {
  switch (expr_arity(op)) {
    case 1:
      return eval_unary(op, result, a);
    case 2:
      return eval_binary(op, result, a, b);
    default:
      return eval_ternary(op, result, a, b, c);
  }
}

ScalarValue eval_bitcast(DType to, ScalarValue a) {
  if (to == a.type) return a;
  const uint64_t bits = is_float(a.type) ? float_to_bits(a.type, a.f) : own_bits(a.type, a.i);
  if (is_float(to)) return {to, 0, float_from_bits(to, bits)};
  return from_int(to, static_cast<int64_t>(bits));
}

ScalarValue eval_cast(DType to, ScalarValue a) {
  if (to == a.type) return a;  // e5m2 keeps its infinities
  if (is_float(a.type)) {
    if (is_bool(to)) return from_bool(a.f != 0);
    if (is_float(to)) return {to, 0, round_to(to, a.f)};
    return {to, saturate_to(to, a.f), 0};
  }
  if (!is_float(to)) return from_int(to, a.i);
  // i64 and u64 are not exact in a double: go to f32 directly, from which the narrower types are rounded.
  const uint64_t u = bits_of(a.i);
  if (to == DType::f64) return {to, 0, is_u64(a.type) ? static_cast<double>(u) : static_cast<double>(a.i)};
  const float f = is_u64(a.type) ? static_cast<float>(u) : static_cast<float>(a.i);
  return {to, 0, round_to(to, static_cast<double>(f))};
}

}  // namespace tilegen::ir
