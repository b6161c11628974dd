// A shape of a tile's or a tensor's elements beside its own: where elements and boxes of one are in the
// other, in row-major order of both.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/program.h"
#include "ir/view_extents.h"

namespace tilegen::ir {

using Shape = std::vector<int64_t>;

// Dimensions [v, v_end) of a view's shape have as many elements as [b, b_end) of its tile's.
struct DimRange {
  size_t v = 0, v_end = 0, b = 0, b_end = 0;
  bool one_to_one() const { return v_end - v == 1 && b_end - b == 1; }
};
// The smallest ones; both shapes have as many elements.
std::vector<DimRange> common_ranges(const Shape& view, const Shape& tile);
// The same of shapes of tensors; nothing where the facts of dims do not show as many elements.
std::optional<std::vector<DimRange>> common_ranges(const ExtentFacts& facts, std::span<const ExprId> view,
                                                   std::span<const ExprId> tile);

// Indices, made without what changes nothing.
class IndexMaker {
 public:
  explicit IndexMaker(ExprPool& e) : e_(e) {}
  ExprId add(ExprId a, ExprId b) { return is(a, 0) ? b : is(b, 0) ? a : e_.add(a, b); }
  ExprId mul(ExprId a, ExprId b) { return is(b, 1) || is(a, 0) ? a : is(a, 1) ? b : e_.mul(a, b); }
  ExprId div(ExprId a, ExprId b) { return is(b, 1) || is(a, 0) ? a : e_.floordiv(a, b); }
  ExprId mod(ExprId a, ExprId b) { return is(a, 0) ? a : is(b, 1) ? zero() : e_.floormod(a, b); }
  ExprId zero() { return e_.const_int(0); }
  ExprId one() { return e_.const_int(1); }
  bool is(ExprId a, int64_t v) const;
  std::optional<int64_t> constant(ExprId a) const;
  // It divides the value, as far as is seen in so many steps.
  bool divides(int64_t d, ExprId a, int depth = 8) const;

 private:
  ExprPool& e_;
};

class Reshape {
 public:
  // `bounds`: of a tensor, whose views have no elements beyond their extents; null of a tile.
  Reshape(Program& p, std::span<const ExprId> view, std::span<const ExprId> tile, const IndexBounds* bounds);

  // Indices of the tile. Those that may leave the view of a tensor leave the tensor, too.
  std::vector<ExprId> element(std::span<const ExprId> indices);
  // A box of the view becomes the tile's; false where it is none, as far as is known.
  bool box(Region& r);

 private:
  using Exprs = std::vector<ExprId>;
  Exprs strides_of(const Exprs& shape, size_t first, size_t end);
  ExprId linear(const DimRange& g, std::span<const ExprId> indices);
  ExprId digit(const DimRange& g, ExprId place, const Exprs& strides, size_t d);
  bool is_full(const Region& r, size_t d) const;
  // Of a place that is q * extent + rest, `run` elements from rest on lying within the extent: q and rest.
  std::optional<std::pair<ExprId, ExprId>> rows_of(ExprId place, int64_t run, ExprId extent);
  bool box(const DimRange& g, const Region& r, Region& out);

  ExprPool& e_;
  IndexMaker at_;
  const Exprs view_, tile_;
  const IndexBounds* bounds_;
  const std::vector<DimRange> groups_;
};

// The index, or -1 where `seen` may lie outside of the extent and does.
ExprId index_within(ExprPool& e, const IndexBounds& bounds, ExprId seen, ExprId extent, ExprId index);

}  // namespace tilegen::ir
