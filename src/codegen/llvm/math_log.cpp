// log, log2 and log1p: x = m * 2^e with m in [sqrt(1/2), sqrt(2)), log m from a series in r = m - 1, exact
// around 1.
#include <limits>

#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/math_parts.h"

namespace tilegen::codegen::math {

using llvm::Value;

namespace {

struct Reduced {
  Value* r = nullptr;     // m - 1, exact
  Value* tail = nullptr;  // log(m) - r
  Value* e = nullptr;     // exponent, integral float
};

// `missed`: what x lacks of the argument, at most half a unit in its last place; none if null.
Reduced reduce(Parts& p, Value* x, Value* missed = nullptr) {
  llvm::IRBuilder<>& b = p.builder();
  const bool wide = p.is_double();
  const int64_t mantissa = wide ? 52 : 23;
  // denormals are lifted into the normal range first
  Value* tiny = b.CreateFCmpOLT(x, p.number(wide ? 0x1p-1022 : 0x1p-126));
  Value* lifted = b.CreateSelect(tiny, b.CreateFMul(x, p.number(wide ? 0x1p54 : 0x1p25)), x);
  Value* i = p.bits(lifted);
  // counting from sqrt(1/2) makes the exponent field that of the wanted range
  Value* root = p.bits(p.number(wide ? 0x1.6a09e667f3bcdp-1 : 0x1.6a09e6p-1));
  Value* offset = b.CreateSub(i, root);
  Value* e = b.CreateAShr(offset, p.integer(mantissa));
  Value* m = p.from_bits(b.CreateSub(i, b.CreateShl(e, p.integer(mantissa))));
  Reduced out;
  out.r = b.CreateFSub(m, p.number(1));
  if (missed) {  // scaled as x is; of a large x it is below what counts
    Value* scale =
        p.power_of_two(b.CreateNeg(b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, e, p.integer(100))));
    out.r = p.fma(missed, scale, out.r);
  }
  out.e = b.CreateFSub(p.from_integer(e), b.CreateSelect(tiny, p.number(wide ? 54 : 25), p.number(0)));
  Value* r = out.r;
  Value* half_square = b.CreateFMul(b.CreateFMul(r, r), p.number(0.5));
  if (wide) {  // log(1 + r) = r - h + s * (h + R(s^2)), h = r^2 / 2, s = r / (2 + r)
    Value* s = b.CreateFDiv(r, b.CreateFAdd(r, p.number(2)));
    Value* z = b.CreateFMul(s, s);
    Value* series =
        b.CreateFMul(z, p.polynomial(z, {0x1.2b5b5fb2eac92p-3, 0x1.39fe208c33457p-3, 0x1.7462b69705382p-3,
                                         0x1.c71c62debf86bp-3, 0x1.2492492df6947p-2, 0x1.99999999952b2p-2,
                                         0x1.5555555555558p-1}));
    out.tail = p.fma(s, b.CreateFAdd(half_square, series), b.CreateFNeg(half_square));
  } else {
    Value* series =
        p.polynomial(r, {0x1.1d8ea6p-4, -0x1.d635bcp-4, 0x1.dea282p-4, -0x1.fcf4c6p-4, 0x1.23d21ap-3,
                         -0x1.555b4ap-3, 0x1.999d5ap-3, -0x1.fffffcp-3, 0x1.555554p-2});
    Value* cube = b.CreateFMul(b.CreateFMul(r, r), r);
    out.tail = p.fma(cube, series, b.CreateFNeg(half_square));
  }
  return out;
}

// 0 -> -inf, +inf -> +inf, negative and NaN -> NaN.
Value* special(Parts& p, Value* x, Value* result) {
  llvm::IRBuilder<>& b = p.builder();
  const double inf = std::numeric_limits<double>::infinity();
  result = b.CreateSelect(b.CreateFCmpOEQ(x, p.number(inf)), x, result);
  result = b.CreateSelect(b.CreateFCmpOEQ(x, p.number(0)), p.number(-inf), result);
  return b.CreateSelect(b.CreateFCmpULT(x, p.number(0)), p.number(std::numeric_limits<double>::quiet_NaN()),
                        result);
}

}  // namespace

Value* emit_log(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  Reduced t = reduce(p, x);
  const bool wide = p.is_double();
  Value* low = p.fma(t.e, p.number(wide ? 0x1.9ef35793c7673p-41 : 0x1.7f7d1cp-20), t.tail);
  Value* sum = b.CreateFAdd(t.r, low);
  return special(p, x, p.fma(t.e, p.number(wide ? 0x1.62e42fefa2000p-1 : 0x1.62e4p-1), sum));
}

// log(u) with u = 1 + x rounded, and what was rounded off as part of r.
Value* emit_log1p(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  const bool wide = p.is_double();
  const double inf = std::numeric_limits<double>::infinity();
  const Pair u = p.sum(x, p.number(1));
  Value* missed = p.select(b.CreateFCmpOLT(p.magnitude(x), p.number(inf)), u.low, p.number(0));
  Reduced t = reduce(p, u.high, missed);
  Value* low = p.fma(t.e, p.number(wide ? 0x1.9ef35793c7673p-41 : 0x1.7f7d1cp-20), t.tail);
  Value* sum = b.CreateFAdd(t.r, low);
  Value* value = special(p, u.high, p.fma(t.e, p.number(wide ? 0x1.62e42fefa2000p-1 : 0x1.62e4p-1), sum));
  return p.select(b.CreateFCmpOLT(p.magnitude(x), p.number(wide ? 0x1p-54 : 0x1p-25)), x, value);
}

// log2(m) = (r + tail) * log2(e), the product with r kept exact by the low part of the constant.
Value* emit_log2(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  Reduced t = reduce(p, x);
  const bool wide = p.is_double();
  Value* high = p.number(wide ? 0x1.71547652b82fep+0 : 0x1.715476p+0);
  Value* low = b.CreateFMul(t.r, p.number(wide ? 0x1.777d0ffda0d24p-56 : 0x1.4ae0cp-26));
  Value* part = p.fma(t.r, high, p.fma(t.tail, high, low));
  return special(p, x, b.CreateFAdd(t.e, part));
}

}  // namespace tilegen::codegen::math
