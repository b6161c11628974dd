// Mathematical functions as straight vectorisable IR: no calls, no tables, no branches. Arguments are float or double,
// scalar or vector; f16 and bf16 go through float.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/backend.h"

namespace tilegen::codegen::math {

using Builder = llvm::IRBuilder<>;

llvm::Value* emit_exp(Builder& b, const HostFeatures& f, llvm::Value* x);
llvm::Value* emit_exp2(Builder& b, const HostFeatures& f, llvm::Value* x);
llvm::Value* emit_log(Builder& b, const HostFeatures& f, llvm::Value* x);
llvm::Value* emit_log2(Builder& b, const HostFeatures& f, llvm::Value* x);
llvm::Value* emit_tanh(Builder& b, const HostFeatures& f, llvm::Value* x);
llvm::Value* emit_erf(Builder& b, const HostFeatures& f, llvm::Value* x);
llvm::Value* emit_sigmoid(Builder& b, const HostFeatures& f, llvm::Value* x);

}  // namespace tilegen::codegen::math
