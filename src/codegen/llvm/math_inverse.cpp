// asin, acos, atan, atan2: odd polynomials near 0, and identities that bring the rest there.
#include <limits>

#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/math_parts.h"

namespace tilegen::codegen::math {

using llvm::Value;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// pi / 2 to twice the precision of the type.
Pair half_pi(Parts& p) {
  return p.is_double() ? Pair{p.number(0x1.921fb54442d18p+0), p.number(0x1.1a62633145c07p-54)}
                       : Pair{p.number(0x1.921fb6p+0), p.number(-0x1.777a5cp-25)};
}

// asin(sqrt(z)) / sqrt(z) - 1, 0 <= z <= 1/4.
Value* asin_tail(Parts& p, Value* z) {
  Value* q = p.is_double()
                 ? p.polynomial(z, {0x1.e5eaecd73c048p-6, -0x1.3c6e8bda1c90dp-6, 0x1.4130d8bed6eb5p-6,
                                    0x1.8c81fb8b1b7bfp-9, 0x1.318cd22051506p-7, 0x1.3b4278fd527e2p-7,
                                    0x1.7b035f7cda474p-7, 0x1.c9909b105280dp-7, 0x1.1c4efd5fe89ecp-6,
                                    0x1.6e8ba11f8c9d4p-6, 0x1.f1c71c7a697e2p-6, 0x1.6db6db6dabff2p-5,
                                    0x1.3333333333389p-4, 0x1.5555555555555p-3})
                 : p.polynomial(z, {0x1.142846p-5, 0x1.18cac8p-6, 0x1.fd9692p-6, 0x1.6d5b60p-5, 0x1.333432p-4,
                                    0x1.555554p-3});
  return p.builder().CreateFMul(z, q);
}

// 2 * asin(sqrt((1 - m) / 2)) for m > 1/2, which is acos(m): the root is corrected by what squaring it
// misses.
Value* acos_near_one(Parts& p, Value* m) {
  Builder& b = p.builder();
  Value* z = b.CreateFMul(b.CreateFSub(p.number(1), m), p.number(0.5));
  Value* root = b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, z);
  Value* missed = b.CreateFNeg(p.residual(root, root, z));
  Value* twice = b.CreateFAdd(root, root);
  Value* correction = p.select(b.CreateFCmpOGT(root, p.number(0)), b.CreateFDiv(missed, twice), p.number(0));
  return b.CreateFMul(p.number(2), b.CreateFAdd(root, p.fma(root, asin_tail(p, z), correction)));
}

// atan(t) - t, |t| <= tan(pi / 8).
Value* atan_tail(Parts& p, Value* t) {
  Builder& b = p.builder();
  Value* z = b.CreateFMul(t, t);
  Value* q = p.is_double()
                 ? p.polynomial(z, {0x1.0a9ad7117784dp-6, -0x1.1b1a2f91f732ap-5, 0x1.74d3e4c62876ap-5,
                                    -0x1.ac7865ba5a1e3p-5, 0x1.e199c7f39bbf5p-5, -0x1.110e84be82b17p-4,
                                    0x1.3b1392aae46b5p-4, -0x1.745d165c5385ap-4, 0x1.c71c71c2fc570p-4,
                                    -0x1.249249248d73ep-3, 0x1.9999999999952p-3, -0x1.5555555555555p-2})
                 : p.polynomial(z, {0x1.9d61f8p-5, -0x1.613c4ep-4, 0x1.c57a9cp-4, -0x1.248a10p-3,
                                    0x1.99997ap-3, -0x1.555556p-2});
  return b.CreateFMul(b.CreateFMul(t, z), q);
}

// atan(y / x) of y, x >= 0, in eighths of a circle: y / x, then pi/4 + atan((y - x) / (y + x)), then
// pi/2 - atan(x / y). x and y are below half the largest number.
Value* atan_of_quotient(Parts& p, Value* y, Value* x, Value* behind) {
  Builder& b = p.builder();
  Value* low = p.number(0.4142135623730950488);
  Value* first = b.CreateFCmpOLE(y, b.CreateFMul(x, low));
  Value* last = b.CreateFCmpOLT(x, b.CreateFMul(y, low));
  Value* above = p.select(first, y, p.select(last, b.CreateFNeg(x), b.CreateFSub(y, x)));
  Value* below = p.select(first, x, p.select(last, y, b.CreateFAdd(y, x)));
  Value* t = b.CreateFDiv(above, below);
  const Pair right = half_pi(p);
  auto base = [&](Value* part) {
    Value* eighth = b.CreateFMul(part, p.number(0.5));
    return p.select(first, p.number(0), p.select(last, part, eighth));
  };
  Value *high = base(right.high), *rest = base(right.low);
  Value* tail = atan_tail(p, t);
  if (behind) {  // pi - that
    high = p.select(behind, b.CreateFSub(b.CreateFAdd(right.high, right.high), high), high);
    rest = p.select(behind, b.CreateFSub(b.CreateFAdd(right.low, right.low), rest), rest);
    t = p.negated_if(behind, t);
    tail = p.negated_if(behind, tail);
  }
  const Pair s = p.sum_ordered(high, t);
  Value* none = p.select(b.CreateFCmpOEQ(high, p.number(0)), p.number(0), s.low);
  return b.CreateFAdd(s.high, b.CreateFAdd(tail, b.CreateFAdd(rest, none)));
}

}  // namespace

Value* emit_asin(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  Value* m = p.magnitude(x);
  Value* small = p.fma(m, asin_tail(p, b.CreateFMul(m, m)), m);
  const Pair right = half_pi(p);
  Value* large = b.CreateFAdd(b.CreateFSub(right.high, acos_near_one(p, m)), right.low);
  return p.with_sign_of(p.select(b.CreateFCmpOLT(m, p.number(0.5)), small, large), x);
}

Value* emit_acos(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  Value* m = p.magnitude(x);
  const Pair right = half_pi(p);
  Value* tail = p.fma(x, asin_tail(p, b.CreateFMul(m, m)), b.CreateFNeg(right.low));
  const Pair s = p.sum_ordered(right.high, b.CreateFNeg(x));
  Value* small = b.CreateFAdd(s.high, b.CreateFSub(s.low, tail));
  Value* near = acos_near_one(p, m);
  Value* twice = b.CreateFAdd(right.low, right.low);
  Value* far = b.CreateFAdd(b.CreateFSub(b.CreateFAdd(right.high, right.high), near), twice);
  Value* large = p.select(b.CreateFCmpOLT(x, p.number(0)), far, near);
  return p.select(b.CreateFCmpOLT(m, p.number(0.5)), small, large);
}

Value* emit_atan(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  Value* m = p.magnitude(x);
  // Where 1 / x has shrunk to nothing all numbers are one.
  Value* within = p.select(b.CreateFCmpOGT(m, p.number(0x1p100)), p.number(0x1p100), m);
  return p.with_sign_of(atan_of_quotient(p, within, p.number(1), nullptr), x);
}

// Both operands by one power of two: neither their sum overflows nor a quotient of subnormals loses bits.
Value* emit_atan2(Builder& b, const MachineFeatures& f, Value* y, Value* x) {
  Parts p(b, f, x);
  const bool wide = p.is_double();
  Value *my = p.magnitude(y), *mx = p.magnitude(x);
  Value* larger = p.select(b.CreateFCmpOGT(my, mx), my, mx);
  Value* factor = p.select(b.CreateFCmpOGT(larger, p.number(wide ? 0x1p900 : 0x1p100)), p.number(0x1p-8),
                           p.select(b.CreateFCmpOLT(larger, p.number(wide ? 0x1p-900 : 0x1p-90)),
                                    p.number(wide ? 0x1p100 : 0x1p30), p.number(1)));
  Value* same = b.CreateFCmpOEQ(my, mx);  // two zeros and two infinities are told apart here
  Value* zero = b.CreateFCmpOEQ(larger, p.number(0));
  Value* infinite = b.CreateFCmpOEQ(larger, p.number(kInfinity));
  auto scaled = [&](Value* v, Value* of_zeros) {
    Value* is_infinite = b.CreateFCmpOEQ(v, p.number(kInfinity));
    Value* flat = p.select(is_infinite, p.number(1), p.number(0));
    Value* s = p.select(infinite, flat, b.CreateFMul(v, factor));
    return p.select(b.CreateAnd(same, zero), of_zeros, s);
  };
  Value* behind = b.CreateICmpSLT(p.bits(x), p.integer(0));
  Value* value = atan_of_quotient(p, scaled(my, p.number(0)), scaled(mx, p.number(1)), behind);
  value = p.select(b.CreateFCmpUNO(x, y), p.number(std::numeric_limits<double>::quiet_NaN()), value);
  return p.with_sign_of(value, y);
}

}  // namespace tilegen::codegen::math
