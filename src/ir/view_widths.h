// Views whose elements have more bits, or fewer, than the tile's: of neighbours in the last dimension, the
// first in the lowest bits, as memory has them.
//
//   view w = reinterpret(X, u32)        X: u8[n, 64], w: u32[n, 16]
//   y = w[i, j]                    ->   y = cast(u32, X[i, 4 * j]) | cast(u32, X[i, 4 * j + 1]) << 8 | ...
//   view b = reinterpret(Y, u8)         Y: u32[n], b: u8[4 * n]
//   y = b[i]                       ->   y = cast(u8, Y[i // 4] >> i % 4 * 8)
#pragma once

#include <span>

#include "ir/draft.h"

namespace tilegen::ir {

// The view reads elements of another number of bits.
bool has_other_width(const Program& p, const TileView& view);
// So many elements of the narrower type are one of the wider.
int64_t width_ratio(DType a, DType b);
// The last extent of a view of `type` of a buffer of `from` with that last extent.
ExprId extent_in_width(ExprPool& e, DType from, DType type, ExprId extent);

// A `to` of its parts, the first in the lowest bits.
ExprId joined_parts(ExprPool& e, DType to, std::span<const ExprId> parts);
// Part `number`, an i64, of a value of more bits.
ExprId part_of_value(ExprPool& e, DType to, ExprId whole, ExprId number);

}  // namespace tilegen::ir
