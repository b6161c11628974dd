// Functions with an exact result: round, fma, fmod.
#include <limits>

#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/math_parts.h"
#include "codegen/llvm/types.h"

namespace tilegen::codegen::math {

using llvm::Value;

// Halves away from zero: x - trunc(x) is exact.
Value* emit_round(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  Value* whole = p.trunc(x);
  Value* far = b.CreateFCmpOGE(p.magnitude(b.CreateFSub(x, whole)), p.number(0.5));
  Value* step = p.select(far, p.number(1), p.number(0));
  return p.with_sign_of(b.CreateFAdd(p.magnitude(whole), step), x);
}

// Without the instruction, of f32 in double: the product is exact, and the sum, rounded to odd, keeps what
// decides the rounding to f32.
Value* emit_fma(Builder& b, const MachineFeatures& f, Value* x, Value* y, Value* z) {
  Parts p(b, f, x);
  if (f.fma) return p.fma(x, y, z);
  if (p.is_double()) return nullptr;
  llvm::Type* wide = shaped_like(x, b.getDoubleTy());
  auto widened = [&](Value* v) { return b.CreateFPExt(v, wide); };
  Value* product = b.CreateFMul(widened(x), widened(y));
  Parts d(b, f, product);
  const Pair sum = d.sum(product, widened(z));
  Value* i = d.bits(sum.high);
  Value* even = b.CreateICmpEQ(b.CreateAnd(i, d.integer(1)), d.integer(0));
  Value* inexact = b.CreateFCmpONE(sum.low, d.number(0));
  Value* same = b.CreateICmpSGE(b.CreateXor(i, d.bits(sum.low)), d.integer(0));
  Value* moved = b.CreateAdd(i, d.select(same, d.integer(1), d.integer(-1)));
  Value* odd = d.from_bits(d.select(b.CreateAnd(even, inexact), moved, i));
  return b.CreateFPTrunc(odd, x->getType());
}

// The remainder of significands, long division with a digit of `digit` bits a step: r = r * 2^digit - q * y
// is exact, and smaller than y whether q is rounded up or down. The sign is settled at the end.
Value* emit_fmod(Builder& b, const MachineFeatures& f, Value* x, Value* y) {
  if (!f.fma && Parts(b, f, x).is_double()) return nullptr;
  Parts p(b, f, x);
  const bool wide = p.is_double();
  const int64_t mantissa = wide ? 52 : 23, bias = wide ? 1023 : 127;
  const int64_t digit = wide ? 50 : 21, lift = wide ? 54 : 25;
  const int64_t furthest = 2 * bias + mantissa;  // between the exponents of two numbers
  const double inf = std::numeric_limits<double>::infinity();
  Value *mx = p.magnitude(x), *my = p.magnitude(y);
  struct Number {
    Value *significand, *exponent;
  };
  auto split = [&](Value* v) {
    Value* tiny = b.CreateFCmpOLT(v, p.number(wide ? 0x1p-1022 : 0x1p-126));
    Value* lifted = p.select(tiny, b.CreateFMul(v, p.power_of_two(p.integer(lift))), v);
    Value* e = b.CreateSub(b.CreateLShr(p.bits(lifted), p.integer(mantissa)), p.integer(bias));
    Value* m = p.from_bits(b.CreateSub(p.bits(lifted), b.CreateShl(e, p.integer(mantissa))));
    return Number{m, b.CreateSub(e, p.select(tiny, p.integer(lift), p.integer(0)))};
  };
  const Number a = split(mx), d = split(my);
  Value* distance = b.CreateSub(a.exponent, d.exponent);
  Value* r = a.significand;
  Value* inverse = b.CreateFDiv(p.number(1), d.significand);
  auto exact_difference = [&](Value* q) {  // r - q * d
    if (f.fma) return p.fma(b.CreateFNeg(q), d.significand, r);
    llvm::Type* twice = shaped_like(x, b.getDoubleTy());
    auto widened = [&](Value* v) { return b.CreateFPExt(v, twice); };
    Value* exact = b.CreateFSub(widened(r), b.CreateFMul(widened(q), widened(d.significand)));
    return b.CreateFPTrunc(exact, x->getType());
  };
  for (int64_t done = 0;; done += digit) {
    r = exact_difference(p.nearest(b.CreateFMul(r, inverse)));
    if (done >= furthest) break;
    Value* now = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, distance, p.integer(digit));
    now = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, now, p.integer(0));
    distance = b.CreateSub(distance, now);
    r = b.CreateFMul(r, p.power_of_two(now));
  }
  r = p.select(b.CreateFCmpOLT(r, p.number(0)), b.CreateFAdd(r, d.significand), r);
  Value* value = p.scale(r, p.from_integer(d.exponent));
  value = p.select(b.CreateFCmpOLT(mx, my), mx, value);
  Value* defined = b.CreateAnd(b.CreateFCmpOLT(mx, p.number(inf)), b.CreateFCmpOGT(my, p.number(0)));
  value = p.select(defined, value, p.number(std::numeric_limits<double>::quiet_NaN()));
  return p.with_sign_of(value, x);
}

}  // namespace tilegen::codegen::math
