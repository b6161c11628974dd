// Mathematical functions as straight vectorisable IR: no calls, no tables, no branches. Arguments are float
// or double, scalar or vector; f16 and bf16 go through float. NaN gives NaN, infinities and zeros give their
// limits, results overflow to infinity and underflow through the denormals to zero.
//
// Largest error in units of the last place (measured, then rounded up; tests hold it):
//              f32    f64
//   exp        1.5    1.5
//   exp2       1      1
//   log        1      1.5
//   log2       1.5    1
//   tanh       1.5    1.5
//   erf        1.5    1.5
//   sigmoid    2.5    2
//   sin, cos   1      1       of every number
//   tan        2.5    2.5
//   asin, acos 1.5    1.5
//   atan       2      1.5
//   atan2      2      2
//   exp10      1.5    1.5
//   expm1      1.5    2
//   log1p      1.5    1.5
//   cbrt       1      1
//   erfc       4.5    3.5
//   pow        1.5    1.5
//   round, fmod, fma are exact, and so are
//   sqrt, floor, ceil (correctly rounded); rsqrt is 1 / sqrt(x): 1.5 in both.
// On NVPTX exp, tanh, sigmoid and rsqrt of f32 start from the approximate instructions (2.5, 2, 4 and 1.5
// units); exp2 of f32 is one of them, with 2.5 units and without denormals, as a softmax wants it; so do all
// functions whose result is rounded to 16 bits (`approximate`), which is far from being visible there.
// f16 and bf16: the float result rounded, so at most the neighbour of the correctly rounded value, and that
// rarely.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/llvm_setup.h"

namespace tilegen::codegen::math {

using Builder = llvm::IRBuilder<>;

llvm::Value* emit_exp(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_exp2(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_log(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_log2(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_tanh(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_erf(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_rsqrt(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_sigmoid(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_exp10(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_expm1(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_log1p(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_erfc(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_sin(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_cos(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_tan(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_asin(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_acos(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_atan(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_atan2(Builder& b, const MachineFeatures& f, llvm::Value* y, llvm::Value* x);
llvm::Value* emit_cbrt(Builder& b, const MachineFeatures& f, llvm::Value* x);
llvm::Value* emit_pow(Builder& b, const MachineFeatures& f, llvm::Value* x, llvm::Value* y);
llvm::Value* emit_round(Builder& b, const MachineFeatures& f, llvm::Value* x);
// Of f64 these two want a machine with fused multiply-adds; null where it has none.
llvm::Value* emit_fmod(Builder& b, const MachineFeatures& f, llvm::Value* x, llvm::Value* y);
llvm::Value* emit_fma(Builder& b, const MachineFeatures& f, llvm::Value* x, llvm::Value* y, llvm::Value* z);

}  // namespace tilegen::codegen::math
