// Coordinates of the copy engine are 32-bit numbers with a sign: tensors longer than that are not moved by
// it, and boxes that begin further out begin here, outside of every tensor.
#pragma once

#include <cstdint>

namespace tilegen::thread {

constexpr int64_t kMaxTensorExtent = (int64_t{1} << 31) - (int64_t{1} << 21);
constexpr int64_t kMaxTensorTile = int64_t{1} << 20;  // from a tile's begin to that of any of its boxes

}  // namespace tilegen::thread
