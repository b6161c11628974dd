// pow and cbrt. x^y = 2^(y * log2(x)) with the logarithm to twice the precision of the type: what it lacks is
// multiplied by y, and y * log2(x) may be as large as the largest exponent.
#include <limits>

#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/math_parts.h"

namespace tilegen::codegen::math {

using llvm::Value;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Split {
  Value* significand = nullptr;  // in [sqrt(1/2), sqrt(2))
  Value* exponent = nullptr;     // integer
};

// Of a positive finite number.
Split split(Parts& p, Value* x) {
  Builder& b = p.builder();
  const bool wide = p.is_double();
  const int64_t mantissa = wide ? 52 : 23;
  Value* tiny = b.CreateFCmpOLT(x, p.number(wide ? 0x1p-1022 : 0x1p-126));
  Value* i = p.bits(p.select(tiny, b.CreateFMul(x, p.number(wide ? 0x1p54 : 0x1p25)), x));
  Value* offset = b.CreateSub(i, p.bits(p.number(wide ? 0x1.6a09e667f3bcdp-1 : 0x1.6a09e6p-1)));
  Value* e = b.CreateAShr(offset, p.integer(mantissa));
  Split out;
  out.significand = p.from_bits(b.CreateSub(i, b.CreateShl(e, p.integer(mantissa))));
  out.exponent = b.CreateSub(e, p.select(tiny, p.integer(wide ? 54 : 25), p.integer(0)));
  return out;
}

Pair constant(Parts& p, double high, double low, float high32, float low32) {
  return p.is_double() ? Pair{p.number(high), p.number(low)} : Pair{p.number(high32), p.number(low32)};
}

// log2 of a positive finite number: 2 atanh(s) = 2 s + s^3 (2/3 + 2/5 s^2 + ...), s = (m - 1) / (m + 1).
Pair log2_pair(Parts& p, Value* x) {
  Builder& b = p.builder();
  const Split parts = split(p, x);
  Value* r = b.CreateFSub(parts.significand, p.number(1));
  const Pair below = p.sum_ordered(p.number(2), r);
  Value* s = b.CreateFDiv(r, below.high);
  Value* missed = b.CreateFNeg(p.residual(s, below.high, r));
  missed = p.fma(b.CreateFNeg(s), below.low, missed);
  const Pair root = p.sum_ordered(s, b.CreateFDiv(missed, below.high));
  const Pair z = p.product(root, root);
  Value* series =
      p.is_double() ? p.polynomial(z.high, {0x1.e03a2a85c66a4p-5, 0x1.df7ba9a3c3a2ap-5, 0x1.1118cd42614d9p-4,
                                            0x1.3b1395b8d436dp-4, 0x1.745d177ad2974p-4, 0x1.c71c71c6ea5c9p-4,
                                            0x1.2492492492522p-3, 0x1.999999999999ap-3})
                    : p.polynomial(z.high, {0x1.d80b0ep-4, 0x1.247a26p-3, 0x1.9999a4p-3});
  const Pair third =
      constant(p, 0x1.5555555555555p-2, 0x1.5555555555555p-56, 0x1.555556p-2f, -0x1.555556p-27f);
  Pair slope = p.sum_ordered(third.high, b.CreateFMul(z.high, series));
  slope.low = b.CreateFAdd(slope.low, third.low);
  // atanh(s) / s - 1, then log2(m) = 2 log2(e) s (1 + that)
  const Pair rest = p.product(z, slope);
  Pair ratio = p.sum_ordered(p.number(1), rest.high);
  ratio = p.sum_ordered(ratio.high, b.CreateFAdd(ratio.low, rest.low));
  const Pair scale = constant(p, 0x1.71547652b82fep+1, 0x1.777d0ffda0d24p-55, 0x1.715476p+1f, 0x1.4ae0cp-25f);
  const Pair log = p.product(p.product(root, scale), ratio);
  const Pair sum = p.sum_ordered(p.from_integer(parts.exponent), log.high);
  Value* none = b.CreateICmpEQ(parts.exponent, p.integer(0));
  const Pair whole = p.sum_ordered(sum.high, b.CreateFAdd(sum.low, log.low));
  return {p.select(none, log.high, whole.high), p.select(none, log.low, whole.low)};
}

// x^y of x > 0, finite.
Value* positive_power(Parts& p, Value* x, Value* y) {
  Builder& b = p.builder();
  const double limit = p.is_double() ? 1200 : 200;
  const Pair log = log2_pair(p, x);
  Value* high = p.rounded_product(y, log.high);
  Value* low = p.fma(y, log.low, p.residual(y, log.high, high));
  Value* far = b.CreateFCmpUGE(p.magnitude(high), p.number(limit));
  low = p.select(far, p.number(0), low);
  high = p.clamp(high, -limit, limit);
  Value* n = p.nearest(high);
  Value* tail = exp2_tail(p, b.CreateFAdd(b.CreateFSub(high, n), low));
  return p.scale(b.CreateFAdd(tail, p.number(1)), n);
}

}  // namespace

// The limits are those of IEEE 754: 1 where either x is 1 or y is 0, NaN or not.
Value* emit_pow(Builder& b, const MachineFeatures& f, Value* x, Value* y) {
  Parts p(b, f, x);
  Value* m = p.magnitude(x);
  Value* zero = b.CreateFCmpOEQ(m, p.number(0));
  Value* infinite = b.CreateFCmpOEQ(m, p.number(kInfinity));
  Value* one = b.CreateFCmpOEQ(m, p.number(1));
  Value* up = b.CreateFCmpOGT(y, p.number(0));
  Value* value = positive_power(p, p.select(b.CreateOr(zero, infinite), p.number(2), m), y);
  value = p.select(one, p.number(1), value);
  value = p.select(zero, p.select(up, p.number(0), p.number(kInfinity)), value);
  value = p.select(infinite, p.select(up, p.number(kInfinity), p.number(0)), value);

  Value* whole = b.CreateFCmpOEQ(p.trunc(y), y);
  Value* half = b.CreateFMul(y, p.number(0.5));
  Value* odd = b.CreateAnd(whole, b.CreateFCmpUNE(p.trunc(half), half));
  Value* negative = b.CreateICmpSLT(p.bits(x), p.integer(0));
  value = p.negated_if(b.CreateAnd(negative, odd), value);
  Value* undefined = b.CreateAnd(b.CreateFCmpOLT(x, p.number(0)), b.CreateNot(b.CreateOr(whole, infinite)));
  undefined = b.CreateOr(undefined, b.CreateFCmpUNO(x, y));
  value = p.select(undefined, p.number(std::numeric_limits<double>::quiet_NaN()), value);
  Value* is_one = b.CreateOr(b.CreateFCmpOEQ(x, p.number(1)), b.CreateFCmpOEQ(y, p.number(0)));
  return p.select(is_one, p.number(1), value);
}

// x = m * 8^k with m in [sqrt(1/2), 4 sqrt(2)): the root of 1 / m from a polynomial and steps of third order,
// then one of Newton's on the root itself, whose residual is exact.
Value* emit_cbrt(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  const bool wide = p.is_double();
  const Split parts = split(p, p.magnitude(x));
  // floor(e / 3) of |e| < 3000, exact in 32 bits
  Value* lifted = b.CreateAdd(parts.exponent, p.integer(3000));
  Value* k = b.CreateLShr(b.CreateMul(lifted, p.integer(0x5556)), p.integer(16));
  Value* left = b.CreateSub(lifted, b.CreateMul(k, p.integer(3)));
  k = b.CreateSub(k, p.integer(1000));
  Value* m = b.CreateFMul(parts.significand, p.power_of_two(left));
  Value* r = p.polynomial(m, {-0x1.ad9012p-18, 0x1.e7b2e6p-13, -0x1.d16ee6p-9, 0x1.e5fff8p-6, -0x1.2f4e26p-3,
                              0x1.d2e7fep-2, -0x1.c5862ap-1, 0x1.8cf910p+0});
  for (int step = 0; step < (wide ? 2 : 1); ++step) {
    Value* cube = b.CreateFMul(b.CreateFMul(r, r), r);
    Value* h = p.fma(b.CreateFNeg(m), cube, p.number(1));
    r = p.fma(b.CreateFMul(r, h), p.fma(h, p.number(2.0 / 9), p.number(1.0 / 3)), r);
  }
  Value* square = b.CreateFMul(r, r);
  Value* y = b.CreateFMul(m, square);
  const Pair of_y = p.product(y, y);
  const Pair cube = p.product(of_y.high, y);
  Value* missed = b.CreateFSub(b.CreateFSub(b.CreateFSub(m, cube.high), cube.low), b.CreateFMul(of_y.low, y));
  y = p.fma(missed, b.CreateFMul(square, p.number(1.0 / 3)), y);
  Value* value = b.CreateFMul(y, p.power_of_two(k));
  Value* own =
      b.CreateOr(b.CreateFCmpOEQ(x, p.number(0)), b.CreateFCmpUEQ(p.magnitude(x), p.number(kInfinity)));
  return p.select(own, x, p.with_sign_of(value, x));
}

}  // namespace tilegen::codegen::math
