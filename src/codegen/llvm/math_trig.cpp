// sin, cos and tan, right for every number of the type. The argument is reduced by Payne and Hanek's way
// ("Radian reduction for trigonometric functions"): of 2 / pi only the bits count that lie neither above a
// whole number of turns nor below what the result can show. They are picked by the exponent, multiplied by
// the significand in integers, and what comes out is x * 2 / pi modulo 4 in fixed point: two bits of
// quadrant, the rest the angle in it.
#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/math_parts.h"
#include "codegen/llvm/types.h"

namespace tilegen::codegen::math {

using llvm::Value;

namespace {

// The bits of 2 / pi behind the point in words of the width of the type, a word of zeros before them.
constexpr uint64_t kTwoOverPi32[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                     0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
constexpr uint64_t kTwoOverPi64[] = {0,
                                     0xa2f9836e4e441529,
                                     0xfc2757d1f534ddc0,
                                     0xdb6295993c439041,
                                     0xfe5163abdebbc561,
                                     0xb7246e3a424dd2e0,
                                     0x06492eea09d1921c,
                                     0xfe1deb1cb129a73e,
                                     0xe88235f52ebb4484,
                                     0xe99c7026b45f7e41,
                                     0x3991d639835339f4,
                                     0x9c845f8bbdf9283b,
                                     0x1ff897ffde05980f,
                                     0xef2f118b5a0a6d1f,
                                     0x6d367ecf27cb09b7,
                                     0x4f463f669e5fea2d,
                                     0x7527bac7ebe5f17b,
                                     0x3d0739f78a5292ea,
                                     0x6bfb5fb11f8d5d08,
                                     0x56033046fc7b6bab};

// |x| = quadrant * pi / 2 + angle, |angle| <= pi / 4.
struct Reduced {
  Value* quadrant = nullptr;  // modulo 4
  Pair angle;
};

// Words first .. first + 3 of the table, `first` at most size - 4: bit after bit of `first`, from the
// highest, halves the words that may still be the wanted ones.
std::vector<Value*> pick_words(Parts& p, std::span<const uint64_t> table, Value* first) {
  Builder& b = p.builder();
  std::vector<Value*> words;
  for (uint64_t w : table) words.push_back(p.integer(static_cast<int64_t>(w)));
  size_t bit = 1;
  while (bit * 2 + 4 <= table.size()) bit *= 2;
  for (; bit > 0; bit /= 2) {
    Value* set = b.CreateICmpNE(b.CreateAnd(first, p.integer(static_cast<int64_t>(bit))), p.integer(0));
    const size_t kept = std::min(words.size(), bit - 1 + 4);
    for (size_t i = 0; i < kept && i + bit < words.size(); ++i)
      words[i] = p.select(set, words[i + bit], words[i]);
    words.resize(kept);
  }
  return words;
}

// m * 0.words modulo 1 in twice the width, m an integer of as many bits as the significand.
Value* fraction_of_product(Parts& p, Value* m, const std::vector<Value*>& words) {
  Builder& b = p.builder();
  const unsigned width = p.is_double() ? 64 : 32;
  llvm::Type* wide = p.integer_type(2 * width);
  auto widened = [&](Value* v) { return b.CreateZExt(v, wide); };
  Value* by = widened(m);
  Value* bits = llvm::ConstantInt::get(wide, width);
  Value* high = b.CreateShl(b.CreateMul(by, widened(words[0])), bits);
  Value* low = b.CreateLShr(b.CreateMul(by, widened(words[2])), bits);
  return b.CreateAdd(b.CreateAdd(high, b.CreateMul(by, widened(words[1]))), low);
}

Reduced reduce(Parts& p, Value* magnitude) {
  Builder& b = p.builder();
  const bool wide = p.is_double();
  const unsigned width = wide ? 64 : 32, mantissa = wide ? 52 : 23, bias = wide ? 1023 : 127;
  Value* i = p.bits(magnitude);
  Value* exponent = b.CreateSub(b.CreateLShr(i, p.integer(mantissa)), p.integer(bias));
  exponent = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, exponent, p.integer(-1));
  exponent = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, exponent, p.integer(bias));
  Value* m =
      b.CreateOr(b.CreateAnd(i, p.integer((int64_t{1} << mantissa) - 1)), p.integer(int64_t{1} << mantissa));
  // The bits behind those that make multiples of 4: x = m * 2^(exponent - mantissa).
  const unsigned ahead = mantissa + 2;
  Value* first = b.CreateAdd(exponent, p.integer(static_cast<int64_t>(width - ahead)));
  const std::span<const uint64_t> table =
      wide ? std::span<const uint64_t>(kTwoOverPi64) : std::span<const uint64_t>(kTwoOverPi32);
  std::vector<Value*> words = pick_words(p, table, b.CreateLShr(first, p.integer(wide ? 6 : 5)));
  Value* shift = b.CreateAnd(first, p.integer(width - 1));
  for (size_t w = 0; w < 3; ++w)
    words[w] = b.CreateIntrinsic(llvm::Intrinsic::fshl, {p.integer_type()}, {words[w], words[w + 1], shift});
  Value* product = fraction_of_product(p, m, words);

  // The quadrant is rounded; the signed rest, in units of 2^(2 - 2 * width) quadrants, is cut into two
  // numbers that convert exactly.
  llvm::Type* twice = p.integer_type(2 * width);
  auto number = [&](uint64_t v) { return llvm::ConstantInt::get(twice, v); };
  auto narrow = [&](Value* v) { return b.CreateTrunc(v, p.integer_type()); };
  Value* rounded = b.CreateAdd(product, b.CreateShl(number(1), number(2 * width - 3)));
  Reduced out;
  out.quadrant = narrow(b.CreateLShr(rounded, number(2 * width - 2)));
  Value* rest = b.CreateShl(product, number(2));
  const unsigned below = 2 * width - mantissa - 1;  // bits under the upper part
  Value* upper = b.CreateAdd(b.CreateAShr(rest, number(below - 1)), number(1));
  upper = b.CreateAShr(upper, number(1));
  Value* lower = b.CreateSub(rest, b.CreateShl(upper, number(below)));
  Value* high = b.CreateSIToFP(narrow(upper), p.number(0)->getType());
  Value* low = b.CreateSIToFP(narrow(b.CreateAShr(lower, number(below - width))), p.number(0)->getType());

  const double unit = wide ? 0x1p-53 : 0x1p-24, small = wide ? 0x1p-117 : 0x1p-56;
  const Pair angle = p.product(high, p.number(unit * (wide ? 0x1.921fb54442d18p+0 : 0x1.921fb6p+0)));
  Value* tail = p.fma(high, p.number(unit * (wide ? 0x1.1a62633145c07p-54 : -0x1.777a5cp-25)), angle.low);
  tail = p.fma(low, p.number(small * (wide ? 0x1.921fb54442d18p+0 : 0x1.921fb6p+0)), tail);
  out.angle = p.sum_ordered(angle.high, tail);

  Value* inside = b.CreateFCmpOLE(magnitude, p.number(wide ? 0x1.921fb54442d18p-1 : 0x1.921fb4p-1));
  out.quadrant = p.select(inside, p.integer(0), out.quadrant);
  out.angle.high = p.select(inside, magnitude, out.angle.high);
  out.angle.low = p.select(inside, p.number(0), out.angle.low);
  return out;
}

Value* sin_of(Parts& p, Pair x) {
  Builder& b = p.builder();
  Value* z = b.CreateFMul(x.high, x.high);
  Value* q = p.is_double()
                 ? p.polynomial(z, {-0x1.ab17d3985bccep-41, 0x1.61217f0ac7f98p-33, -0x1.ae645412c4787p-26,
                                    0x1.71de3a5460952p-19, -0x1.a01a01a019938p-13, 0x1.1111111111110p-7,
                                    -0x1.5555555555555p-3})
                 : p.polynomial(z, {0x1.6dbe08p-19, -0x1.a013a8p-13, 0x1.11110ep-7, -0x1.555556p-3});
  Value* slope = p.fma(z, p.number(-0.5), p.number(1));
  Value* tail = p.fma(b.CreateFMul(z, x.high), q, b.CreateFMul(slope, x.low));
  return b.CreateFAdd(x.high, tail);
}

Value* cos_of(Parts& p, Pair x) {
  Builder& b = p.builder();
  Value* z = b.CreateFMul(x.high, x.high);
  Value* q = p.is_double()
                 ? p.polynomial(z, {0x1.ab785aa02d659p-45, -0x1.9394ba0c332d9p-37, 0x1.1eed8deb97423p-29,
                                    -0x1.27e4fb7712d61p-22, 0x1.a01a01a019d0ap-16, -0x1.6c16c16c16c16p-10,
                                    0x1.5555555555555p-5})
                 : p.polynomial(z, {-0x1.25244ep-22, 0x1.a015c4p-16, -0x1.6c16c0p-10, 0x1.555556p-5});
  Value* half = b.CreateFMul(z, p.number(0.5));
  const Pair one = p.sum_ordered(p.number(1), b.CreateFNeg(half));
  Value* tail = p.fma(b.CreateFMul(z, z), q, one.low);
  tail = p.fma(b.CreateFNeg(x.high), x.low, tail);
  return b.CreateFAdd(one.high, tail);
}

// Infinities and NaN have no sine.
Value* of_finite(Parts& p, Value* x, Value* value) {
  Value* finite =
      p.builder().CreateFCmpOLT(p.magnitude(x), p.number(std::numeric_limits<double>::infinity()));
  return p.select(finite, value, p.number(std::numeric_limits<double>::quiet_NaN()));
}

Value* bit_of(Parts& p, Value* quadrant, int64_t bit) {
  Builder& b = p.builder();
  return b.CreateICmpNE(b.CreateAnd(quadrant, p.integer(bit)), p.integer(0));
}

}  // namespace

Value* emit_sin(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  const Reduced r = reduce(p, p.magnitude(x));
  Value* value = p.select(bit_of(p, r.quadrant, 1), cos_of(p, r.angle), sin_of(p, r.angle));
  value = p.negated_if(bit_of(p, r.quadrant, 2), value);
  return of_finite(p, x, p.negated_if(b.CreateICmpSLT(p.bits(x), p.integer(0)), value));
}

Value* emit_cos(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  const Reduced r = reduce(p, p.magnitude(x));
  Value* value = p.select(bit_of(p, r.quadrant, 1), sin_of(p, r.angle), cos_of(p, r.angle));
  Value* next = b.CreateAdd(r.quadrant, p.integer(1));
  return of_finite(p, x, p.negated_if(bit_of(p, next, 2), value));
}

// sin / cos, in odd quadrants -cos / sin.
Value* emit_tan(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  const Reduced r = reduce(p, p.magnitude(x));
  Value *sine = sin_of(p, r.angle), *cosine = cos_of(p, r.angle);
  Value* odd = bit_of(p, r.quadrant, 1);
  Value* value = b.CreateFDiv(p.select(odd, b.CreateFNeg(cosine), sine), p.select(odd, sine, cosine));
  return of_finite(p, x, p.negated_if(b.CreateICmpSLT(p.bits(x), p.integer(0)), value));
}

}  // namespace tilegen::codegen::math
