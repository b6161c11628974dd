#include "ir/view_shape.h"

#include <numeric>
#include <utility>

namespace tilegen::ir {

std::vector<DimRange> common_ranges(const Shape& view, const Shape& tile) {
  std::vector<DimRange> groups;
  size_t v = 0, b = 0;
  while (v < view.size() && b < tile.size()) {
    DimRange g{v, v + 1, b, b + 1};
    int64_t of_view = view[v++], of_tile = tile[b++];
    while (of_view != of_tile) of_view < of_tile ? of_view *= view[v++] : of_tile *= tile[b++];
    while (v < view.size() && view[v] == 1) ++v;
    while (b < tile.size() && tile[b] == 1) ++b;
    g.v_end = v, g.b_end = b;
    groups.push_back(g);
  }
  return groups;
}

namespace {

// Elements of a step along each dimension of [first, end).
Shape strides_of(const Shape& shape, size_t first, size_t end) {
  Shape strides(end - first, 1);
  for (size_t d = end - first; d-- > 1;) strides[d - 1] = strides[d] * shape[first + d];
  return strides;
}

}  // namespace

bool IndexMaker::is(ExprId a, int64_t v) const {
  int64_t value = 0;
  return e_.is_const_int(a, &value) && value == v;
}

bool IndexMaker::divides(int64_t d, ExprId a, int depth) const {
  const ExprNode& n = e_[a];
  int64_t value = 0;
  if (d == 1) return true;
  if (e_.is_const_int(a, &value)) return value % d == 0;
  if (depth == 0) return false;
  if (n.op == ExprOp::add || n.op == ExprOp::sub)
    return divides(d, n.a, depth - 1) && divides(d, n.b, depth - 1);
  if (n.op != ExprOp::mul) return false;
  for (const auto& [factor, other] : {std::pair(n.a, n.b), {n.b, n.a}})
    if (e_.is_const_int(factor, &value) && value != 0)
      return divides(d / std::gcd(d, value), other, depth - 1);
  return false;
}

std::vector<ExprId> Reshape::element(std::span<const ExprId> indices) {
  std::vector<ExprId> out(tile_.size());
  for (const DimRange& g : common_ranges(view_, tile_)) {
    const ExprId place = linear(g, indices);
    const Shape strides = strides_of(tile_, g.b, g.b_end);
    for (size_t d = g.b; d < g.b_end; ++d) out[d] = digit(g, place, strides, d);
  }
  return out;
}

bool Reshape::box(Region& r) {
  Region out{r.buffer, std::vector<ExprId>(tile_.size()), Shape(tile_.size(), 1)};
  for (const DimRange& g : common_ranges(view_, tile_))
    if (!box(g, r, out)) return false;
  r.offsets = std::move(out.offsets);
  r.extents = std::move(out.extents);
  return true;
}

ExprId Reshape::linear(const DimRange& g, std::span<const ExprId> indices) {
  const Shape strides = strides_of(view_, g.v, g.v_end);
  ExprId place = at_.zero();
  for (size_t d = g.v; d < g.v_end; ++d) place = at_.add(place, at_.mul(indices[d], strides[d - g.v]));
  return place;
}

ExprId Reshape::digit(const DimRange& g, ExprId place, const Shape& strides, size_t d) {
  const ExprId at = at_.div(place, strides[d - g.b]);
  return d == g.b ? at : at_.mod(at, tile_[d]);
}

bool Reshape::is_full(const Region& r, size_t d) const {
  return r.extents[d] == view_[d] && at_.is(r.offsets[d], 0);
}

// The box's part in these dimensions is one run of elements, and that a box of the tile's.
bool Reshape::box(const DimRange& g, const Region& r, Region& out) {
  size_t first = g.v;
  while (first + 1 < g.v_end && r.extents[first] == 1) ++first;
  int64_t run = r.extents[first];
  for (size_t d = first + 1; d < g.v_end; ++d) {
    if (!is_full(r, d)) return false;
    run *= view_[d];
  }
  const ExprId place = linear(g, r.offsets);
  const Shape strides = strides_of(tile_, g.b, g.b_end);
  size_t last = g.b_end;  // the dimension that the run goes along, those behind it being full
  for (size_t d = g.b; d < g.b_end && last == g.b_end; ++d)
    if (run % strides[d - g.b] == 0 && run / strides[d - g.b] <= tile_[d]) last = d;
  if (last == g.b_end || !at_.divides(strides[last - g.b], place)) return false;
  const int64_t extent = run / strides[last - g.b];
  const bool inside = last == g.b || extent == 1 || (tile_[last] % extent == 0 && at_.divides(run, place));
  if (!inside) return false;
  for (size_t d = g.b; d < g.b_end; ++d) {
    out.offsets[d] = d <= last ? digit(g, place, strides, d) : at_.zero();
    out.extents[d] = d < last ? 1 : d == last ? extent : tile_[d];
  }
  return true;
}

}  // namespace tilegen::ir
