#include "analysis/warpgroup_operand.h"

#include <numeric>
#include <ranges>
#include <utility>

#include "layout/tensor_tile.h"

namespace tilegen::analysis {

using layout::Digit;
using layout::Layout;
using layout::Swizzle;
using target::WarpgroupAtom;

namespace {

constexpr int64_t kAtomRows = layout::kSwizzleRows;

// Widest swizzle whose rows divide what the instruction takes of the inner dimension; 0 where there is none.
int swizzle_width(int64_t inner_bytes) {
  for (int width : std::views::reverse(layout::kBoxSwizzles))
    if (inner_bytes % width == 0) return width;
  return 0;
}

}  // namespace

OperandSide side_of(const MatrixDims& m, int side) {
  return side == 0 ? OperandSide{m, m.row, m.col} : OperandSide{m, m.col, m.row};
}

std::optional<Layout> boxed_operand(const OperandSide& s, int64_t part, int bytes) {
  const int width = swizzle_width(std::gcd(s.k_major() ? s.extent(s.inner()) : part, s.together) * bytes);
  if (width == 0) return std::nullopt;
  return layout::boxed_tile(s.dims.shape, s.inner(), s.outer(), bytes, width);
}

bool needs_k_major_copy(const WarpgroupAtom& atom, const MatrixDims& dims, int side) {
  return !atom.mn_major && !side_of(dims, side).k_major();
}

std::optional<KMajorCopy> k_major_copy(const MatrixDims& dims, int side, int element_bytes, int64_t part) {
  const OperandSide lies = side_of(dims, side);
  const int64_t rows = lies.extent(lies.rows), k = lies.extent(lies.k);
  const TransposeTile block = transposed_block(element_bytes);
  if (rows % block.rows != 0 || k % block.k != 0) return std::nullopt;
  KMajorCopy copy;
  copy.dims = side == 0 ? MatrixDims{{rows, k}, 0, 1} : MatrixDims{{rows, k}, 1, 0};
  copy.rows = rows;
  copy.k = k;
  auto layout = boxed_operand(side_of(copy.dims, side), part, element_bytes);
  if (!layout || !boxed_operand(lies, rows, element_bytes)) return std::nullopt;
  copy.layout = std::move(*layout);
  return copy;
}

std::optional<WarpgroupOperand> warpgroup_operand_form(const Layout& l, const MatrixDims& dims, int side,
                                                       int element_bytes, int64_t part, int64_t k) {
  const OperandSide s = side_of(dims, side);
  const Swizzle& z = l.swizzle();
  if (l.shape() != dims.shape || l.outputs() != 1 || z.none() || z.base != 4 || z.shift != 3 || z.bits > 3 ||
      l.element_bytes() != element_bytes)
    return std::nullopt;
  const int64_t width = layout::kSwizzleUnit << z.bits, row = width / element_bytes;
  const int64_t inner = s.extent(s.inner()), outer = s.extent(s.outer()), rows = s.extent(s.rows);
  // Rows of one swizzle width along the inner dimension, boxes of them any distance apart.
  int64_t box = 0;
  const Layout canonical = l.canonical();
  for (const Digit& d : canonical.digits()) {
    if (d.dim == s.inner() && d.weight == 1 ? d.extent != row || d.stride != 1
        : d.dim == s.inner()                ? d.weight != row || d.extent != inner / row
        : d.dim == s.outer()                ? d.extent != outer || d.stride != row
                                            : true)
      return std::nullopt;
    if (d.dim == s.inner() && d.weight == row) box = d.stride;
  }
  if (inner % row != 0 || outer % kAtomRows != 0 || box * element_bytes % (kAtomRows * width) != 0)
    return std::nullopt;
  if (s.extent(s.k) % k != 0 || rows % part != 0) return std::nullopt;
  WarpgroupOperand o;
  o.form.swizzle = static_cast<int>(width);
  o.form.k_major = s.k_major();
  o.form.stride_bytes = kAtomRows * width;
  const int64_t steps = s.extent(s.k) / k;
  if (s.k_major()) {
    if (row % k != 0 || part % kAtomRows != 0) return std::nullopt;
    for (int64_t i = 0; i < steps; ++i) o.steps.push_back(i * k % row + i * k / row * box);
    o.row_stride = part * row;
  } else {
    if (element_bytes != 2 || part % row != 0 || k % kAtomRows != 0) return std::nullopt;
    o.form.leading_bytes = (box > 0 ? box : outer * row) * element_bytes;
    for (int64_t i = 0; i < steps; ++i) o.steps.push_back(i * k * row);
    o.row_stride = part / row * (box > 0 ? box : outer * row);
  }
  return o;
}

}  // namespace tilegen::analysis
