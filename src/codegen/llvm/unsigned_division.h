// Unsigned division without LLVM's own. For AMDGPU: LLVM 19.1.7 divides values that it knows to be few bits
// sign-extended in 24-bit floats, and wrongly where they are negative (LLVM pull request 116733). For NVPTX:
// nvptx/expand_division.h.
#pragma once

#include <functional>

#include <llvm/IR/IRBuilder.h>

namespace tilegen::codegen {

// a / d for a constant d > 0, by a multiplication (Granlund and Montgomery, "Division by Invariant Integers
// using Multiplication", figure 4.1). Integers of 64 bits at most.
llvm::Value* quotient_by_constant(llvm::IRBuilder<>& b, llvm::Value* a, const llvm::APInt& d);

// 1 / x of an f32, within two units of the last place.
using Reciprocal = std::function<llvm::Value*(llvm::IRBuilderBase&, llvm::Value*)>;

// n / d of 64 bits, d not 0: two steps of Newton's iteration refine the reciprocal.
llvm::Value* unsigned_quotient(llvm::IRBuilderBase& b, llvm::Value* n, llvm::Value* d,
                               const Reciprocal& reciprocal);

// The same number, of which LLVM knows nothing.
llvm::Value* opaque(llvm::IRBuilder<>& b, llvm::Value* v);

}  // namespace tilegen::codegen
