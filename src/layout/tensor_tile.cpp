#include "layout/tensor_tile.h"

#include <algorithm>
#include <ranges>

namespace tilegen::layout {

namespace {

// A dimension as `count` runs of `extent` elements, `stride` apart within a run and `step` from run to run.
struct Runs {
  int64_t extent = 1, stride = 0, count = 1, step = 0;
};

std::optional<Runs> runs_of(const Layout& canonical, int dim) {
  Runs r;
  int digits = 0;
  for (const Digit& d : canonical.digits()) {
    if (d.dim != dim) continue;
    if (++digits == 1) {
      r.extent = d.extent;
      r.stride = d.stride;
    } else if (digits == 2) {
      r.count = d.extent;
      r.step = d.stride;
    } else {
      return std::nullopt;
    }
  }
  return r;
}

// Parts of equal size, at most `most`, each a multiple of `unit`.
int64_t largest_part(int64_t extent, int64_t most, int64_t unit) {
  for (int64_t part = std::min(extent, most); part >= unit; --part)
    if (extent % part == 0 && part % unit == 0) return part;
  return 0;
}

int swizzle_bytes(const Swizzle& s) {
  if (s.none()) return 0;
  return s.base == 4 && s.shift == 3 && s.bits <= 3 ? 16 << s.bits : -1;
}

}  // namespace

std::optional<TensorTile> tensor_tile(const Layout& l, int inner_dim, int element_bytes,
                                      std::string* reason) {
  auto refuse = [&](std::string why) {
    if (reason) *reason = std::move(why);
    return std::nullopt;
  };
  int outer_dim = -1;
  for (int d = 0; d < l.rank(); ++d) {
    if (l.padded_extent(d) != l.shape()[static_cast<size_t>(d)]) return refuse("the tile is padded");
    if (d == inner_dim || l.shape()[static_cast<size_t>(d)] == 1) continue;
    if (outer_dim >= 0) return refuse("more than two dimensions of the tile have several elements");
    outer_dim = d;
  }
  if (l.outputs() != 1 || !l.is_injective()) return refuse("elements of the tile share places");
  const int width = swizzle_bytes(l.swizzle());
  if (width < 0 || (width > 0 && l.element_bytes() != element_bytes))
    return refuse("the tile's swizzle is none of the copy engine's");

  const Layout canonical = l.canonical();
  const auto inner = runs_of(canonical, inner_dim);
  const auto outer = outer_dim < 0 ? std::optional(Runs{}) : runs_of(canonical, outer_dim);
  if (!inner || !outer) return refuse("the tile's elements are not in the order of boxes");
  if (inner->extent > 1 && inner->stride != 1)
    return refuse("the tile is not contiguous along the tensor's dense dimension");

  TensorTile t;
  t.swizzle = width;
  t.inner = inner->extent;
  t.column_boxes = inner->count;
  t.column_stride = inner->count > 1 ? inner->step : 0;
  if (outer->extent == 1 && width == 0 && t.inner > kMaxBoxExtent) {  // one row: boxes of a part of it
    if (t.column_boxes > 1) return refuse("the tile's elements are not in the order of boxes");
    t.inner = largest_part(inner->extent, kMaxBoxExtent, std::max<int64_t>(1, kBoxAlignment / element_bytes));
    if (t.inner == 0)
      return refuse("the row has no part of at most 256 elements that is a multiple of 128 bytes");
    t.column_boxes = inner->extent / t.inner;
    t.column_stride = t.inner;
  }
  const int64_t row_bytes = t.inner * element_bytes;
  if (t.inner > kMaxBoxExtent) return refuse("rows of more than 256 elements that are not split into boxes");
  if (row_bytes % kSwizzleUnit != 0)
    return refuse("rows of " + std::to_string(row_bytes) + " bytes, no multiple of 16");
  if (width > 0 && row_bytes != width)
    return refuse("rows of " + std::to_string(row_bytes) +
                  " bytes that are not split into boxes of the swizzle's " + std::to_string(width));
  if (outer->extent > 1 && outer->stride != t.inner)
    return refuse("the tile's rows do not follow each other closely");

  t.rows = largest_part(outer->extent, kMaxBoxExtent, width > 0 ? kSwizzleRows : 1);
  if (t.rows == 0)
    return refuse("the tile's rows cannot be split into boxes of whole repeats of the swizzle");
  const int64_t split = outer->extent / t.rows;  // boxes of one run of rows
  if (split > 1 && outer->count > 1) return refuse("the tile's elements are not in the order of boxes");
  t.row_boxes = split * outer->count;
  t.row_stride = split > 1 ? t.rows * t.inner : outer->count > 1 ? outer->step : 0;
  const int64_t place = std::max<int64_t>(kBoxAlignment, width * kSwizzleRows);
  for (int64_t step : {t.row_boxes > 1 ? t.row_stride : 0, t.column_boxes > 1 ? t.column_stride : 0})
    if (step * element_bytes % place != 0)
      return refuse("its boxes would not begin at multiples of " + std::to_string(place) + " bytes");
  return t;
}

std::optional<Layout> boxed_tile(std::vector<int64_t> shape, int inner_dim, int outer_dim, int element_bytes,
                                 int swizzle) {
  const int64_t inner = shape[static_cast<size_t>(inner_dim)], outer = shape[static_cast<size_t>(outer_dim)];
  const int64_t row = swizzle / element_bytes;
  if (outer % kSwizzleRows != 0 || row == 0 || inner % row != 0) return std::nullopt;
  std::vector<Digit> digits = {{inner_dim, row, 1, 0, 1},
                               {outer_dim, outer, 1, 0, row},
                               {inner_dim, inner / row, row, 0, outer * row}};
  const Swizzle s{swizzle == 128 ? 3 : swizzle == 64 ? 2 : 1, 4, 3};
  auto l = Layout::make(std::move(shape), std::move(digits), 1, s, element_bytes);
  return l ? std::optional<Layout>(*l) : std::nullopt;
}

std::optional<Layout> widest_boxed_tile(const std::vector<int64_t>& shape, int inner_dim, int outer_dim,
                                        int element_bytes) {
  if (outer_dim < 0) return std::nullopt;
  for (int width : std::views::reverse(kBoxSwizzles))
    if (auto boxed = boxed_tile(shape, inner_dim, outer_dim, element_bytes, width)) return boxed;
  return std::nullopt;
}

}  // namespace tilegen::layout
