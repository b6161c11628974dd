// Places in memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include <llvm/IR/IRBuilder.h>

namespace tilegen::codegen {

// `offset` bytes after `pointer`. In global memory, where the index, in bytes, is known to have 31
// bits: `base` is the address of its tensor and `within` the bytes from there to `pointer`. These are sums of
// what is not negative where `upward`.
struct Place {
  llvm::Value* pointer = nullptr;
  int64_t offset = 0;
  llvm::Value *base = nullptr, *within = nullptr;
  bool upward = false;
  bool bounded = false;  // what is beyond the tensor is left to the hardware

  Place after(int64_t bytes) const { return {pointer, offset + bytes, base, within, upward, bounded}; }
};

llvm::Value* pointer(llvm::IRBuilder<>& b, const Place& at);  // with its offset

// Of one access to `bytes` bytes: the largest power of two, up to 16, that divides them.
inline int64_t part_bytes(int64_t bytes) { return std::min<int64_t>(bytes & -bytes, 16); }

// Of a load. standing: nothing writes the memory while the kernel runs, equal loads may be one, and may leave
// loops. early: of such memory, and emitted where its latency is to begin: it stays there.
enum class LoadKind : uint8_t { plain, standing, early };

}  // namespace tilegen::codegen
