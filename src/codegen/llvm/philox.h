// The operation philox of expressions (ir/philox.h).
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace tilegen::codegen {

// Operands of 64 bits, scalars or vectors of one shape; gives words of 32.
llvm::Value* emit_philox(llvm::IRBuilder<>& b, llvm::Value* seed, llvm::Value* offset, llvm::Value* lane);

}  // namespace tilegen::codegen
