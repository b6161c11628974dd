// A shape of a tile's elements beside the tile's own: where elements and boxes of one are in the other, in
// row-major order of both.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/program.h"

namespace tilegen::ir {

using Shape = std::vector<int64_t>;

// Dimensions [v, v_end) of a view's shape have as many elements as [b, b_end) of its tile's.
struct DimRange {
  size_t v = 0, v_end = 0, b = 0, b_end = 0;
};
// The smallest ones; both shapes have as many elements.
std::vector<DimRange> common_ranges(const Shape& view, const Shape& tile);

// Indices, made without what changes nothing.
class IndexMaker {
 public:
  explicit IndexMaker(ExprPool& e) : e_(e) {}
  ExprId add(ExprId a, ExprId b) { return is(a, 0) ? b : is(b, 0) ? a : e_.add(a, b); }
  ExprId mul(ExprId a, int64_t b) { return b == 1 || is(a, 0) ? a : e_.mul(a, b); }
  ExprId div(ExprId a, int64_t b) { return b == 1 || is(a, 0) ? a : e_.floordiv(a, e_.const_int(b)); }
  ExprId mod(ExprId a, int64_t b) { return is(a, 0) ? a : b == 1 ? zero() : e_.floormod(a, e_.const_int(b)); }
  ExprId zero() { return e_.const_int(0); }
  bool is(ExprId a, int64_t v) const;
  // It divides the value, as far as is seen in so many steps.
  bool divides(int64_t d, ExprId a, int depth = 8) const;

 private:
  ExprPool& e_;
};

class Reshape {
 public:
  Reshape(ExprPool& e, const Shape& view, const Shape& tile) : at_(e), view_(view), tile_(tile) {}

  // Indices of the tile.
  std::vector<ExprId> element(std::span<const ExprId> indices);
  // A box of the view becomes the tile's; false where it is none, as far as is known.
  bool box(Region& r);

 private:
  ExprId linear(const DimRange& g, std::span<const ExprId> indices);
  ExprId digit(const DimRange& g, ExprId place, const Shape& strides, size_t d);
  bool is_full(const Region& r, size_t d) const;
  bool box(const DimRange& g, const Region& r, Region& out);

  IndexMaker at_;
  const Shape view_, tile_;
};

}  // namespace tilegen::ir
