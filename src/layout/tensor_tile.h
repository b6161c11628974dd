// Shared tiles as a copy engine fills them: boxes of whole rows, dense, with the engine's swizzle.
//
// requires: the layout of a tile, compact or with one XOR swizzle; the tile's dimension that is dense in the
//   tensor.
// ensures: filling box after box puts every element where the layout says.
// refuses (a reason): padding, rows wider than the swizzle that are not split into boxes, another order or
// swizzle.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layout/layout.h"

namespace tilegen::layout {

// What the copy engine moves at once (CUDA driver API, cuTensorMapEncodeTiled; PTX ISA, "Tensors").
inline constexpr int64_t kMaxBoxExtent = 256;         // elements along one dimension
inline constexpr int64_t kBoxAlignment = 128;         // bytes, of a box's place
inline constexpr int kBoxSwizzles[] = {32, 64, 128};  // bytes of a row
inline constexpr int64_t kTensorUnit = 16;   // bytes: a multiple of it are addresses and strides of tensors
inline constexpr int64_t kSwizzleUnit = 16;  // bytes that it moves together, and the narrowest row of a box
inline constexpr int64_t kSwizzleRows = 8;   // after which it repeats
inline constexpr int64_t kSwizzleRepeat = kSwizzleRows * 128;  // bytes: whole repeats of any of them

// The tile, or a part of it that begins at element `first`, as boxes of `rows` x `inner` elements: box (r, c)
// begins at first + r * row_stride + c * column_stride and holds the rows r * rows .. and the elements
// c * inner .. along the dense dimension.
struct TensorTile {
  int64_t inner = 0, rows = 0;
  int64_t row_boxes = 1, column_boxes = 1;
  int64_t row_stride = 0, column_stride = 0;
  int swizzle = 0;  // bytes: 0, 32, 64, 128
  int64_t first = 0;
  bool operator==(const TensorTile&) const = default;
};

// `inner_dim` is the dimension of the tile that is dense in the tensor; all others but one have extent 1.
std::optional<TensorTile> tensor_tile(const Layout& l, int inner_dim, int element_bytes, std::string* reason);

// A tile made for the engine: rows of `swizzle` bytes (32, 64, 128) along `inner_dim`, one box of
// `outer_dim`'s rows after the other. Nothing where the extents do not divide into such boxes.
std::optional<Layout> boxed_tile(std::vector<int64_t> shape, int inner_dim, int outer_dim, int element_bytes,
                                 int swizzle);

// The same of the widest swizzle that the extents divide into. Nothing for a tile of one row too, where
// `outer_dim` is negative.
std::optional<Layout> widest_boxed_tile(const std::vector<int64_t>& shape, int inner_dim, int outer_dim,
                                        int element_bytes);

}  // namespace tilegen::layout
