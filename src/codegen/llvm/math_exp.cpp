// exp, exp2, exp10, expm1, sigmoid, tanh. e^x = 2^n * e^r with n = round(x / ln 2), |r| <= ln(2)/2; the
// polynomials are Chebyshev fits of the remainder after the leading exact terms.
#include <llvm/IR/IntrinsicsAMDGPU.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/llvm/math_parts.h"

namespace tilegen::codegen::math {

using llvm::Value;

namespace {

// 2^x, within 2 ulps; of f32 denormals and all.
Value* approximate_exp2(Builder& b, Value* x) {
  return b.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_f, {}, {x});
}

// 2^x, within 1 ulp; denormals count as 0 (instruction set document, "V_EXP_F32").
Value* exp2_amdgpu(Builder& b, Value* x) {
  return b.CreateIntrinsic(llvm::Intrinsic::amdgcn_exp2, {x->getType()}, {x});
}

// e^x = 2^n * 2^f with n = round(x / ln 2): the last multiplication overflows and underflows.
Value* exp_amdgpu(Builder& b, const MachineFeatures& features, Value* x) {
  Parts p(b, features, x);
  x = p.clamp(x, -104, 89);
  Value* n = p.nearest(b.CreateFMul(x, p.number(0x1.715476p+0)));
  Value* f = p.fma(x, p.number(0x1.715476p+0), b.CreateFNeg(n));
  f = p.fma(x, p.number(0x1.4ae0cp-26), f);
  Value* whole = b.CreateFreeze(b.CreateFPToSI(n, b.getInt32Ty()));  // of NaN any, and NaN comes out
  return b.CreateIntrinsic(llvm::Intrinsic::ldexp, {x->getType(), b.getInt32Ty()},
                           {exp2_amdgpu(b, f), whole});
}

// e^x = 2^n * 2^f. n is kept where 2^n is a normal number; what lies beyond stays in f, so that overflow,
// denormals and infinities come out of the instruction and the last multiplication. n is rounded and its
// exponent field made by adding 1.5 * 2^23, after a saturation that is free of charge.
Value* exp_nvptx(Builder& b, const MachineFeatures& features, Value* x) {
  Parts p(b, features, x);
  constexpr double kLog2e = 0x1.71547652b82fep+0, kLow = -126, kSteps = 253, kBias = 127, kMagic = 0x1.8p23;
  if (features.approximate) return approximate_exp2(b, b.CreateFMul(x, p.number(kLog2e)));
  Value* part = p.fma(x, p.number(kLog2e / kSteps), p.number(-kLow / kSteps));
  part = b.CreateIntrinsic(llvm::Intrinsic::nvvm_saturate_f, {}, {part});
  Value* biased = p.fma(part, p.number(kSteps), p.number(kMagic + kLow + kBias));
  Value* n = b.CreateFSub(biased, p.number(kMagic + kBias));
  Value* f = p.fma(x, p.number(0x1.715476p+0), b.CreateFNeg(n));
  f = p.fma(x, p.number(0x1.4ae0cp-26), f);
  Value* power = p.from_bits(b.CreateShl(p.bits(biased), p.integer(23)));
  return b.CreateFMul(b.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_ftz_f, {}, {f}), power);
}

// 1 - 2 / (e^2|x| + 1) from two approximate instructions, beyond |x| = 0.8: where their errors have shrunk to
// few ulps.
Value* tanh_nvptx(Builder& b, const MachineFeatures& features, Value* x) {
  Parts p(b, features, x);
  constexpr double kTwoLog2e = 0x1.715476p+1;
  Value* m = p.magnitude(x);
  Value* z = b.CreateFMul(x, x);
  Value* q = p.polynomial(
      z, {0x1.a18fbap-10, -0x1.e69908p-8, 0x1.5d3478p-6, -0x1.b92fc0p-5, 0x1.110b7cp-3, -0x1.55553ep-2});
  Value* small = p.fma(b.CreateFMul(z, m), q, m);
  Value* e =
      b.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_ftz_f, {}, {b.CreateFMul(m, p.number(kTwoLog2e))});
  Value* part = b.CreateIntrinsic(llvm::Intrinsic::nvvm_rcp_approx_ftz_f, {}, {b.CreateFAdd(e, p.number(1))});
  Value* large = p.fma(part, p.number(-2), p.number(1));
  return p.with_sign_of(b.CreateSelect(b.CreateFCmpOLT(m, p.number(0.8)), small, large), x);
}

}  // namespace

Value* emit_exp(Builder& b, const MachineFeatures& f, Value* x) {
  if (f.nvptx && x->getType()->isFloatTy()) return exp_nvptx(b, f, x);
  if (f.amdgpu && x->getType()->isFloatTy()) return exp_amdgpu(b, f, x);
  return emit_exp_polynomial(b, f, x);
}

Value* emit_exp_polynomial(Builder& b, const MachineFeatures& f, Value* x) {
  if (f.approximate) return emit_exp(b, f, x);
  Parts p(b, f, x);
  const Power power = exp_power(p, x);
  return p.scale(b.CreateFAdd(power.tail, p.number(1)), power.n);
}

Power exp_power(Parts& p, Value* x) {
  Builder& b = p.builder();
  constexpr double kLog2e = 0x1.71547652b82fep+0;
  Value *r, *n, *q;
  if (p.is_double()) {
    x = p.clamp(x, -746, 710);
    n = p.nearest(b.CreateFMul(x, p.number(kLog2e)));
    r = p.fma(n, p.number(-0x1.62e42fefa2000p-1), x);
    r = p.fma(n, p.number(-0x1.9ef35793c7673p-41), r);
    q = p.polynomial(r, {0x1.af3ce42b12b24p-26, 0x1.2894f52583578p-22, 0x1.71de0be2b5e96p-19,
                         0x1.a019b621f9d08p-16, 0x1.a01a01a83ba17p-13, 0x1.6c16c1794e1dcp-10,
                         0x1.1111111110918p-7, 0x1.5555555553b6cp-5, 0x1.5555555555556p-3, 0x1p-1});
  } else {
    x = p.clamp(x, -104, 89);
    n = p.nearest(b.CreateFMul(x, p.number(kLog2e)));
    r = p.fma(n, p.number(-0x1.62e4p-1), x);
    r = p.fma(n, p.number(-0x1.7f7d1cp-20), r);
    q = p.polynomial(r,
                     {0x1.a12a42p-13, 0x1.6d4920p-10, 0x1.1110e0p-7, 0x1.5554e4p-5, 0x1.555556p-3, 0x1p-1});
  }
  return {p.fma(b.CreateFMul(r, r), q, r), n};
}

// 2^n * (e^r - 1) + (2^n - 1), both parts of it exact or far from cancelling.
Value* emit_expm1(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  const bool wide = p.is_double();
  const Power power = exp_power(p, p.select(b.CreateFCmpOLT(x, p.number(-40)), p.number(-40), x));
  Value* less = b.CreateFSub(p.number(1), p.power_of_two(p.to_integer(b.CreateFNeg(power.n))));
  less = p.select(b.CreateFCmpOGT(power.n, p.number(wide ? 64 : 32)), p.number(1), less);
  Value* value = p.scale(b.CreateFAdd(power.tail, less), power.n);
  // keeps the sign of zero, and the subnormals
  return p.select(b.CreateFCmpOLT(p.magnitude(x), p.number(wide ? 0x1p-54 : 0x1p-25)), x, value);
}

// 10^x = 2^n * 10^r with n = round(x * log2(10)), |r| <= log10(2) / 2.
Value* emit_exp10(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  constexpr double kLog2Of10 = 0x1.a934f0979a371p+1;
  Value *n, *r, *q;
  if (p.is_double()) {
    x = p.clamp(x, -324, 309);
    n = p.nearest(b.CreateFMul(x, p.number(kLog2Of10)));
    r = p.fma(n, p.number(-0x1.34413509f7800p-2), x);
    r = p.fma(n, p.number(-0x1.fef311f12b358p-46), r);
    q = p.polynomial(
        r, {0x1.85c384491d998p-15, 0x1.fbfbfebba9af7p-13, 0x1.2ea502e314b41p-10, 0x1.4897871d2d659p-8,
            0x1.4116b0676e655p-6, 0x1.16e4dfceb8b7bp-4, 0x1.a7ed70847b41ap-3, 0x1.1429ffd1d2e20p-1,
            0x1.2bd7609fd98c6p+0, 0x1.0470591de2ca8p+1, 0x1.53524c73cea69p+1, 0x1.26bb1bbb55516p+1});
  } else {
    x = p.clamp(x, -46, 39);
    n = p.nearest(b.CreateFMul(x, p.number(kLog2Of10)));
    r = p.fma(n, p.number(-0x1.344p-2), x);
    r = p.fma(n, p.number(-0x1.3509f8p-18), r);
    q = p.polynomial(
        r, {0x1.a94b4cp-3, 0x1.1559fep-1, 0x1.2bd702p+0, 0x1.046fb4p+1, 0x1.53524cp+1, 0x1.26bb1cp+1});
  }
  return p.scale(p.fma(r, q, p.number(1)), n);
}

Value* exp2_tail(Parts& p, Value* r) {
  Builder& b = p.builder();
  Value* q = p.is_double()
                 ? p.polynomial(r, {0x1.c4a2aaa2b01d9p-36, 0x1.e9ec3d7558475p-32, 0x1.e4cf10d1896bep-28,
                                    0x1.b524ebc089f66p-24, 0x1.62c02242bb0bdp-20, 0x1.ffcbfc6dad6adp-17,
                                    0x1.430912f86b7d4p-13, 0x1.5d87fe78a3f8cp-10, 0x1.3b2ab6fba4e79p-7,
                                    0x1.c6b08d704a0c6p-5, 0x1.ebfbdff82c58fp-3, 0x1.62e42fefa39efp-1})
                 : p.polynomial(r, {0x1.4413a4p-13, 0x1.5f08b8p-10, 0x1.3b2a52p-7, 0x1.c6af6cp-5,
                                    0x1.ebfbe0p-3, 0x1.62e430p-1});
  return b.CreateFMul(r, q);
}

Value* emit_exp2(Builder& b, const MachineFeatures& f, Value* x) {
  if (f.approximate) return approximate_exp2(b, x);
  if (f.nvptx && x->getType()->isFloatTy())
    return b.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_ftz_f, {}, {x});
  if (f.amdgpu && x->getType()->isFloatTy()) return exp2_amdgpu(b, x);
  Parts p(b, f, x);
  Value *n, *q;
  if (p.is_double()) {
    x = p.clamp(x, -1076, 1025);
    n = p.nearest(x);
    Value* r = b.CreateFSub(x, n);
    q = p.polynomial(
        r, {0x1.c4a37e478b25dp-36, 0x1.e9ed48b35dbf1p-32, 0x1.e4cf105a3a015p-28, 0x1.b524eb29e2f30p-24,
            0x1.62c02242d24bcp-20, 0x1.ffcbfc6de821dp-17, 0x1.430912f86b79ap-13, 0x1.5d87fe78a3ef9p-10,
            0x1.3b2ab6fba4e79p-7, 0x1.c6b08d704a0c6p-5, 0x1.ebfbdff82c58fp-3, 0x1.62e42fefa39efp-1, 1});
  } else {
    x = p.clamp(x, -151, 129);
    n = p.nearest(x);
    Value* r = b.CreateFSub(x, n);
    q = p.polynomial(
        r, {0x1.44149ap-13, 0x1.5f0a1cp-10, 0x1.3b2a52p-7, 0x1.c6af6ap-5, 0x1.ebfbep-3, 0x1.62e43p-1, 1});
  }
  return p.scale(q, n);
}

// Through e^-|x|, which neither overflows nor loses the small results of a very negative x.
Value* emit_sigmoid(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  Value* e = emit_exp(b, f, b.CreateFNeg(p.magnitude(x)));
  Value* over = b.CreateSelect(b.CreateFCmpOLT(x, p.number(0)), e, p.number(1));
  Value* under = b.CreateFAdd(e, p.number(1));
  if (!f.nvptx || p.is_double()) return b.CreateFDiv(over, under);
  return b.CreateFMul(over, b.CreateIntrinsic(llvm::Intrinsic::nvvm_rcp_approx_ftz_f, {}, {under}));
}

// Odd polynomial near 0; 1 - 2 / (e^2|x| + 1) elsewhere, which is 1 when the exponential overflows.
Value* emit_tanh(Builder& b, const MachineFeatures& f, Value* x) {
  if (f.nvptx && x->getType()->isFloatTy()) return tanh_nvptx(b, f, x);
  Parts p(b, f, x);
  Value* m = p.magnitude(x);
  Value* z = b.CreateFMul(x, x);
  Value* q =
      p.is_double()
          ? p.polynomial(z, {0x1.b33642a122cddp-18, -0x1.05bbdae896297p-15, 0x1.8445870f6fe41p-14,
                             -0x1.f243823c8c981p-13, 0x1.3526e9ed54da1p-11, -0x1.7d9f6f23e8682p-10,
                             0x1.d6d39ae3905e2p-9, -0x1.226e3473dce5cp-7, 0x1.664f487e0a749p-6,
                             -0x1.ba1ba1ba0f126p-5, 0x1.11111111110a8p-3, -0x1.5555555555555p-2})
          : p.polynomial(z, {-0x1.8f8de4p-8, 0x1.58048ep-6, -0x1.b9258ap-5, 0x1.110e1cp-3, -0x1.555552p-2});
  Value* small = p.fma(b.CreateFMul(z, m), q, m);
  Value* e = emit_exp_polynomial(b, f, b.CreateFAdd(m, m));
  Value* large = b.CreateFSub(p.number(1), b.CreateFDiv(p.number(2), b.CreateFAdd(e, p.number(1))));
  return p.with_sign_of(b.CreateSelect(b.CreateFCmpOLT(m, p.number(0.625)), small, large), x);
}

// The instruction and one step of Newton's; where the step is not a number (0, infinities) the instruction is
// exact.
Value* emit_rsqrt(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  if (!f.nvptx || p.is_double())
    return b.CreateFDiv(p.number(1), b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
  Value* y = b.CreateIntrinsic(llvm::Intrinsic::nvvm_rsqrt_approx_f, {}, {x});
  if (f.approximate) return y;
  Value* error = p.fma(b.CreateFNeg(b.CreateFMul(x, y)), y, p.number(1));
  Value* better = p.fma(b.CreateFMul(y, p.number(0.5)), error, y);
  return b.CreateSelect(b.CreateFCmpOLT(p.magnitude(error), p.number(1)), better, y);
}

}  // namespace tilegen::codegen::math
