// Places in memory, as LLVM and as instructions name them.
#pragma once

#include <cstdint>
#include <vector>

#include <llvm/IR/IRBuilder.h>

namespace tilegen::codegen {

// `offset` bytes after `pointer`.
struct Place {
  llvm::Value* pointer = nullptr;
  int64_t offset = 0;
};

llvm::Value* pointer(llvm::IRBuilder<>& b, const Place& at);  // with its offset
// The two operands `[pointer+offset]` of an instruction are made of.
std::vector<llvm::Value*> address(llvm::IRBuilder<>& b, Place at);

}  // namespace tilegen::codegen
