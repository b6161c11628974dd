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

// Of a load. standing: nothing writes the memory while the kernel runs, equal loads may be one, and may leave
// loops. early: of such memory, and emitted where its latency is to begin: it stays there.
enum class LoadKind : uint8_t { plain, standing, early };

}  // namespace tilegen::codegen
