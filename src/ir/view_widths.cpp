#include "ir/view_widths.h"

#include <algorithm>

#include "ir/unsigned_types.h"
#include "ir/view_shape.h"

namespace tilegen::ir {
bool has_other_width(const Program& p, const TileView& view) {
  return view.form == TileView::Form::reinterpret &&
         dtype_bits(view.type) != dtype_bits(p.buffer(view.of).type);
}

int64_t width_ratio(DType a, DType b) {
  const int x = dtype_bits(a), y = dtype_bits(b);
  return std::max(x, y) / std::min(x, y);
}

ExprId extent_in_width(ExprPool& e, DType from, DType type, ExprId extent) {
  const ExprId ratio = e.const_int(width_ratio(from, type));
  return dtype_bits(type) > dtype_bits(from) ? IndexMaker(e).div(extent, ratio)
                                             : IndexMaker(e).mul(extent, ratio);
}

ExprId joined_parts(ExprPool& e, DType to, std::span<const ExprId> parts) {
  const DType bits = unsigned_of(dtype_bits(to));
  const int step = dtype_bits(to) / static_cast<int>(parts.size());
  ExprId value;
  for (size_t i = 0; i < parts.size(); ++i) {
    const ExprId part = e.cast(bits, e.bitcast(unsigned_of(step), parts[i]));
    const ExprId placed = e.binary(ExprOp::shl, part, e.const_int(static_cast<int64_t>(i) * step, bits));
    value = value.valid() ? e.binary(ExprOp::bit_or, value, placed) : placed;
  }
  return e.bitcast(to, value);
}

ExprId part_of_value(ExprPool& e, DType to, ExprId whole, ExprId number) {
  const DType bits = unsigned_of(dtype_bits(e.type(whole)));
  const ExprId by = e.cast(bits, IndexMaker(e).mul(number, e.const_int(dtype_bits(to))));
  const ExprId moved = e.binary(ExprOp::shr, e.bitcast(bits, whole), by);
  return e.bitcast(to, e.cast(unsigned_of(dtype_bits(to)), moved));
}

}  // namespace tilegen::ir
