// Places in memory.
#pragma once

#include <cstdint>

#include <llvm/IR/IRBuilder.h>

namespace tilegen::codegen {

// `offset` bytes after `pointer`.
struct Place {
  llvm::Value* pointer = nullptr;
  int64_t offset = 0;
};

llvm::Value* pointer(llvm::IRBuilder<>& b, const Place& at);  // with its offset

}  // namespace tilegen::codegen
