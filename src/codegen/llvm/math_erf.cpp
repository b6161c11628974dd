// erfc beyond 1/2: e^(-x^2) times a polynomial in (x - 4) / (x + 4) over (1 + 2x), as Shepherd and
// Laframboise do ("Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < infinity"). erf: odd
// polynomial below about 1, 1 - erfc above. erfc is e^(polynomial) for float, e^(-x^2) times a polynomial in
// (x - 3) / (x + 3) over (1 + 2x) for double.
#include "codegen/llvm/math_parts.h"

namespace tilegen::codegen::math {

using llvm::Value;

namespace {

Value* erfc_float(Parts& p, const MachineFeatures& f, Value* m) {
  Value* t = p.clamp(m, 0.92, 4);
  Value* log_erfc =
      p.polynomial(t, {0x1.b9314p-20, -0x1.835e5p-15, 0x1.3963c6p-11, -0x1.382f88p-8, 0x1.b10bbap-6,
                       -0x1.c2f26ep-4, -0x1.437d32p-1, -0x1.2157400p+0, 0x1.5001dep-12});
  return emit_exp_polynomial(p.builder(), f, log_erfc);
}

Value* erfc_double(Parts& p, const MachineFeatures& f, Value* m) {
  llvm::IRBuilder<>& b = p.builder();
  Value* t = p.clamp(m, 1, 6);
  Value* u = b.CreateFDiv(b.CreateFSub(t, p.number(3)), b.CreateFAdd(t, p.number(3)));
  Value* q = p.polynomial(
      u, {0x1.d7ca17ca98da4p-21, 0x1.ce0f760cacfc3p-19, -0x1.fa4f3d15b5c07p-21, -0x1.521bb0b930550p-16,
          0x1.4e4224ed53933p-18, 0x1.0660f9d2d1ae0p-13, -0x1.b914c3ad428b1p-14, -0x1.98db7ca6ab823p-11,
          0x1.ef1bde5d498e2p-10, 0x1.4b884ed34fb0bp-9, -0x1.8574c40be9dbbp-6, 0x1.17ca2877d32f2p-4,
          -0x1.e88b803a49511p-4, 0x1.098366a5b4984p-3, -0x1.85a15c58aa5d4p-5, -0x1.15c084bb9e8f5p-3,
          0x1.40c522d7e4987p+0});
  Value* e = emit_exp_polynomial(b, f, b.CreateFNeg(b.CreateFMul(t, t)));
  return b.CreateFDiv(b.CreateFMul(e, q), p.fma(t, p.number(2), p.number(1)));
}

// erf(m), 0 <= m <= 1.
Value* erf_small(Parts& p, Value* m) {
  Value* z = p.builder().CreateFMul(m, m);
  Value* q = p.is_double()
                 ? p.polynomial(z, {0x1.3c01fd3a74542p-42, -0x1.b40e7abf9f000p-38, 0x1.9a0fcb5e22c5bp-34,
                                    -0x1.517ce02f1265fp-30, 0x1.fcbb312b48443p-27, -0x1.5f73c3bf14b91p-23,
                                    0x1.b9e6c38e5cf3dp-20, -0x1.f4d25bf9af03ap-17, 0x1.f9a326f7ac5b1p-14,
                                    -0x1.c02db40035f1ep-11, 0x1.565bcd0e6a2eep-8, -0x1.b82ce31288b47p-6,
                                    0x1.ce2f21a042be2p-4, -0x1.812746b0379e7p-2, 0x1.06eba8214db69p-3})
                 : p.polynomial(z, {0x1.5d955cp-14, -0x1.aa7e38p-11, 0x1.54cfb6p-8, -0x1.b80f72p-6,
                                    0x1.ce2e14p-4, -0x1.812744p-2, 0x1.06eba8p-3});
  return p.fma(m, q, m);
}

}  // namespace

Value* emit_erf(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  const bool wide = p.is_double();
  Value* m = p.magnitude(x);
  Value* small = erf_small(p, m);
  Value* large = b.CreateFSub(p.number(1), wide ? erfc_double(p, f, m) : erfc_float(p, f, m));
  return p.with_sign_of(b.CreateSelect(b.CreateFCmpOLT(m, p.number(wide ? 1.0 : 0.92)), small, large), x);
}

Value* emit_erfc(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  const bool wide = p.is_double();
  Value* m = p.clamp(p.magnitude(x), 0, wide ? 28 : 10.2);
  Value* t = b.CreateFAdd(m, p.number(4));
  Value* q = b.CreateFDiv(b.CreateFSub(m, p.number(4)), t);
  Value* series =
      wide ? p.polynomial(q, {-0x1.f47207b168acdp-30, -0x1.d5bb4c6d5b92dp-27, -0x1.09198a32cd9a9p-27,
                              0x1.ef6c0c38d1a2bp-24,  0x1.0d535fce28f99p-24,  -0x1.c05fc977974eap-21,
                              0x1.4392983419eddp-22,  0x1.7fb88e391a9fep-18,  -0x1.78a43458cca4bp-17,
                              -0x1.996ad056e530bp-16, 0x1.3be0b393ee921p-13,  -0x1.a1de7c6e9ac9cp-13,
                              -0x1.8d4a9dc0d22f3p-11, 0x1.49c671893963fp-8,   -0x1.0962388367b2fp-6,
                              0x1.3079edfa1033fp-5,   -0x1.0fb06dfe46987p-4,  0x1.7fee004df6263p-4,
                              -0x1.9ddb23c3e98a6p-4,  0x1.16ecefcfa6077p-4,   0x1.f7f5df66fd951p-7,
                              -0x1.1df1ad154a29cp-3,  0x1.3ba5916e9fd7fp+0})
           : p.polynomial(q, {0x1.b9e9b6p-11, 0x1.c49f14p-8, -0x1.05f6c8p-6, 0x1.2a65f2p-5, -0x1.10cdb4p-4,
                              0x1.804fa6p-4, -0x1.9dac70p-4, 0x1.16e852p-4, 0x1.f7e3f0p-7, -0x1.1df1a4p-3,
                              0x1.3ba592p+0});
  const Pair square = p.product(m, m);
  const Power power = exp_power(p, b.CreateFNeg(square.high));
  Value* e = b.CreateFAdd(power.tail, p.number(1));
  e = p.fma(b.CreateFNeg(square.low), e, e);
  Value* scaled = b.CreateFDiv(b.CreateFMul(e, series), p.fma(m, p.number(2), p.number(1)));
  Value* value = p.scale(scaled, power.n);
  value = p.select(b.CreateFCmpOLT(x, p.number(0)), b.CreateFSub(p.number(2), value), value);
  Value* small = b.CreateFSub(p.number(1), p.with_sign_of(erf_small(p, p.magnitude(x)), x));
  return p.select(b.CreateFCmpOLT(p.magnitude(x), p.number(0.5)), small, value);
}

}  // namespace tilegen::codegen::math
