// erf: odd polynomial below about 1, 1 - erfc above. erfc is e^(polynomial) for float, e^(-x^2) times a
// polynomial in (x - 3) / (x + 3) over (1 + 2x) for double.
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

}  // namespace

Value* emit_erf(Builder& b, const MachineFeatures& f, Value* x) {
  Parts p(b, f, x);
  const bool wide = p.is_double();
  Value* m = p.magnitude(x);
  Value* z = b.CreateFMul(x, x);
  Value* q = wide ? p.polynomial(z, {0x1.3c01fd3a74542p-42, -0x1.b40e7abf9f000p-38, 0x1.9a0fcb5e22c5bp-34,
                                     -0x1.517ce02f1265fp-30, 0x1.fcbb312b48443p-27, -0x1.5f73c3bf14b91p-23,
                                     0x1.b9e6c38e5cf3dp-20, -0x1.f4d25bf9af03ap-17, 0x1.f9a326f7ac5b1p-14,
                                     -0x1.c02db40035f1ep-11, 0x1.565bcd0e6a2eep-8, -0x1.b82ce31288b47p-6,
                                     0x1.ce2f21a042be2p-4, -0x1.812746b0379e7p-2, 0x1.06eba8214db69p-3})
                  : p.polynomial(z, {0x1.5d955cp-14, -0x1.aa7e38p-11, 0x1.54cfb6p-8, -0x1.b80f72p-6,
                                     0x1.ce2e14p-4, -0x1.812744p-2, 0x1.06eba8p-3});
  Value* small = p.fma(m, q, m);
  Value* large = b.CreateFSub(p.number(1), wide ? erfc_double(p, f, m) : erfc_float(p, f, m));
  return p.with_sign_of(b.CreateSelect(b.CreateFCmpOLT(m, p.number(wide ? 1.0 : 0.92)), small, large), x);
}

}  // namespace tilegen::codegen::math
