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

std::optional<std::vector<DimRange>> common_ranges(const ExtentFacts& facts, std::span<const ExprId> view,
                                                   std::span<const ExprId> tile) {
  // Of the dimensions in front of each.
  const auto products = [&](std::span<const ExprId> shape) {
    std::vector<std::optional<ExtentProduct>> all;
    for (size_t d = 0; d <= shape.size(); ++d) all.push_back(facts.product(shape.first(d)));
    return all;
  };
  const auto of_view = products(view), of_tile = products(tile);
  const ExtentProduct one;
  const auto is_one = [&](ExprId extent) { return facts.product(extent) == one; };
  std::vector<DimRange> groups;
  size_t v = 0, b = 0;
  while (v < view.size() && b < tile.size()) {
    DimRange g{v, 0, b, 0};
    for (size_t v_end = v + 1; v_end <= view.size() && g.v_end == 0; ++v_end)
      for (size_t b_end = b + 1; b_end <= tile.size() && g.v_end == 0; ++b_end)
        if (of_view[v_end] && of_view[v_end] == of_tile[b_end]) g.v_end = v_end, g.b_end = b_end;
    if (g.v_end == 0) return std::nullopt;
    while (g.v_end < view.size() && is_one(view[g.v_end])) ++g.v_end;
    while (g.b_end < tile.size() && is_one(tile[g.b_end])) ++g.b_end;
    v = g.v_end, b = g.b_end;
    groups.push_back(g);
  }
  return v == view.size() && b == tile.size() ? std::optional(groups) : std::nullopt;
}

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

std::optional<int64_t> IndexMaker::constant(ExprId a) const {
  int64_t value = 0;
  return e_.is_const_int(a, &value) ? std::optional(value) : std::nullopt;
}

constexpr size_t kMaxTerms = 16;  // that a place is looked at as a sum of

ExprId index_within(ExprPool& e, const IndexBounds& bounds, ExprId seen, ExprId extent, ExprId index) {
  if (!bounds.ends_within(seen, 1, extent)) index = e.select(e.lt(seen, extent), index, e.const_int(-1));
  if (!bounds.not_negative(seen)) index = e.select(e.le(e.const_int(0), seen), index, e.const_int(-1));
  return index;
}

Reshape::Reshape(Program& p, std::span<const ExprId> view, std::span<const ExprId> tile,
                 const IndexBounds* bounds)
    : e_(p.exprs),
      at_(p.exprs),
      view_(view.begin(), view.end()),
      tile_(tile.begin(), tile.end()),
      bounds_(bounds),
      groups_(common_ranges(ExtentFacts(p), view, tile).value_or(std::vector<DimRange>())) {}

// Elements of a step along each dimension of [first, end).
Reshape::Exprs Reshape::strides_of(const Exprs& shape, size_t first, size_t end) {
  Exprs strides(end - first, at_.one());
  for (size_t d = end - first; d-- > 1;) strides[d - 1] = at_.mul(strides[d], shape[first + d]);
  return strides;
}

std::vector<ExprId> Reshape::element(std::span<const ExprId> indices) {
  std::vector<ExprId> out(tile_.size());
  for (const DimRange& g : groups_) {
    const ExprId place = linear(g, indices);
    const Exprs strides = strides_of(tile_, g.b, g.b_end);
    const auto rows = g.b_end - g.b == 2 ? rows_of(place, 1, tile_[g.b + 1]) : std::nullopt;
    for (size_t d = g.b; d < g.b_end; ++d) out[d] = digit(g, place, strides, d);
    if (rows) out[g.b] = rows->first, out[g.b + 1] = rows->second;
    // What leaves the first dimension leaves the tensor's. What leaves another would be the next row's.
    for (size_t d = g.v + 1; bounds_ && d < g.v_end; ++d)
      out[g.b] = index_within(e_, *bounds_, indices[d], view_[d], out[g.b]);
  }
  return out;
}

bool Reshape::box(Region& r) {
  Region out{r.buffer, std::vector<ExprId>(tile_.size()), Shape(tile_.size(), 1)};
  for (const DimRange& g : groups_)
    if (!box(g, r, out)) return false;
  r.offsets = std::move(out.offsets);
  r.extents = std::move(out.extents);
  return true;
}

ExprId Reshape::linear(const DimRange& g, std::span<const ExprId> indices) {
  const Exprs strides = strides_of(view_, g.v, g.v_end);
  ExprId place = at_.zero();
  for (size_t d = g.v; d < g.v_end; ++d) place = at_.add(place, at_.mul(indices[d], strides[d - g.v]));
  return place;
}

ExprId Reshape::digit(const DimRange& g, ExprId place, const Exprs& strides, size_t d) {
  const ExprId at = at_.div(place, strides[d - g.b]);
  return d == g.b ? at : at_.mod(at, tile_[d]);
}

bool Reshape::is_full(const Region& r, size_t d) const {
  return at_.is(view_[d], r.extents[d]) && at_.is(r.offsets[d], 0);
}

std::optional<std::pair<ExprId, ExprId>> Reshape::rows_of(ExprId place, int64_t run, ExprId extent) {
  if (!bounds_) return std::nullopt;
  Exprs terms, todo{place};
  while (!todo.empty() && terms.size() + todo.size() <= kMaxTerms) {
    const ExprNode n = e_[todo.back()];
    const ExprId term = todo.back();
    todo.pop_back();
    if (n.op == ExprOp::add)
      todo.insert(todo.end(), {n.b, n.a});
    else
      terms.push_back(term);
  }
  if (!todo.empty()) return std::nullopt;
  for (size_t i = 0; i < terms.size(); ++i) {
    const ExprNode n = e_[terms[i]];
    if (n.op != ExprOp::mul || (n.a != extent && n.b != extent)) continue;
    ExprId rest = at_.zero();
    for (size_t other = 0; other < terms.size(); ++other)
      if (other != i) rest = at_.add(rest, terms[other]);
    if (bounds_->not_negative(rest) && bounds_->ends_within(rest, run, extent))
      return std::pair(n.b == extent ? n.a : n.b, rest);
  }
  return std::nullopt;
}

// The box's part in these dimensions is one run of elements, and that a box of the tile's.
bool Reshape::box(const DimRange& g, const Region& r, Region& out) {
  if (g.one_to_one()) {
    out.offsets[g.b] = r.offsets[g.v];
    out.extents[g.b] = r.extents[g.v];
    return true;
  }
  size_t first = g.v;
  while (first + 1 < g.v_end && r.extents[first] == 1) ++first;
  int64_t run = r.extents[first];
  for (size_t d = first + 1; d < g.v_end; ++d) {
    if (!is_full(r, d)) return false;
    run *= r.extents[d];
  }
  for (size_t d = g.v + 1; bounds_ && d <= first; ++d)
    if (!bounds_->not_negative(r.offsets[d]) || !bounds_->ends_within(r.offsets[d], r.extents[d], view_[d]))
      return false;
  const ExprId place = linear(g, r.offsets);
  const Exprs strides = strides_of(tile_, g.b, g.b_end);
  size_t last = g.b_end;  // the dimension that the run goes along, those behind it being full
  for (size_t d = g.b; d < g.b_end && last == g.b_end; ++d) {
    const auto stride = at_.constant(strides[d - g.b]), extent = at_.constant(tile_[d]);
    if (!stride || *stride < 1 || run % *stride != 0) continue;
    const int64_t steps = run / *stride;
    const bool overhangs = bounds_ && d == g.b;
    if (overhangs || steps == 1 || (extent && steps <= *extent)) last = d;
  }
  if (last == g.b_end && g.b_end - g.b == 2)
    if (const auto rows = rows_of(place, run, tile_[g.b + 1])) {
      out.offsets[g.b] = rows->first, out.offsets[g.b + 1] = rows->second;
      out.extents[g.b] = 1, out.extents[g.b + 1] = run;
      return true;
    }
  if (last == g.b_end) return false;
  const int64_t stride = *at_.constant(strides[last - g.b]);
  if (!at_.divides(stride, place)) return false;
  const int64_t extent = run / stride;
  const bool inside =
      last == g.b || extent == 1 || (*at_.constant(tile_[last]) % extent == 0 && at_.divides(run, place));
  if (!inside) return false;
  for (size_t d = g.b; d < g.b_end; ++d) {
    out.offsets[d] = d <= last ? digit(g, place, strides, d) : at_.zero();
    out.extents[d] = d < last ? 1 : d == last ? extent : *at_.constant(tile_[d]);
  }
  return true;
}

}  // namespace tilegen::ir
