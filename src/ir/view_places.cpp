#include "ir/view_places.h"

#include "ir/view_operands.h"

namespace tilegen::ir {

ExprId ViewPlaces::read(BufferId view, std::vector<ExprId> at) {
  const DType type = p_.buffer(view).type;
  ExprPool& e = p_.exprs;
  BufferId b = view;
  while (is_view(b) && !other_width(b)) step(b, at);
  if (!is_view(b)) return e.bitcast(type, e.load(b, p_.buffer(b).type, at));
  for (size_t d = 0; d < at.size(); ++d) check_constant(b, at[d], 1, d);
  const BufferId inner = draft_.views.at(b).of;
  for (BufferId of = inner; is_view(of); of = draft_.views.at(of).of)
    if (other_width(of)) return two_widths(b, type);
  const DType whole = p_.buffer(b).type, part = p_.buffer(inner).type;
  const ExprId ratio = e.const_int(width_ratio(whole, part)), place = at.back();
  if (dtype_bits(whole) < dtype_bits(part)) {
    at.back() = e.floordiv(place, ratio);
    const ExprId found = narrow(inner, at);
    return e.bitcast(type, part_of_value(e, whole, found, e.floormod(place, ratio)));
  }
  std::vector<ExprId> parts;
  for (int64_t i = 0; i < width_ratio(whole, part); ++i) {
    at.back() = e.add(e.mul(place, ratio), i);
    parts.push_back(narrow(inner, at));
  }
  return e.bitcast(type, joined_parts(e, whole, parts));
}

ExprId ViewPlaces::narrow(BufferId view, std::vector<ExprId> at) {
  const DType type = p_.buffer(view).type;
  element(view, at);
  return p_.exprs.bitcast(type, p_.exprs.load(view, p_.buffer(view).type, at));
}

ExprId ViewPlaces::two_widths(BufferId view, DType type) {
  error(DiagCode::dtype_mismatch,
        "'" + p_.buffer(view).name + "' is a view of a view of another number of bits than its tile's",
        "name it of the tile itself, whose elements have " +
            std::to_string(dtype_bits(p_.buffer(tile_of(view)).type)) + " bits");
  return p_.exprs.const_number(0, type);
}

void ViewPlaces::error(DiagCode code, std::string message, std::string hint) {
  if (!errors_.empty()) return;
  Diagnostic d;
  d.code = code;
  d.op = kernel_;
  d.message = std::move(message);
  d.hint = std::move(hint);
  d.location = location_;
  d.stage = "resolve";
  errors_.push_back(std::move(d));
}

void ViewPlaces::outside(BufferId view, int64_t index, size_t d) {
  error(DiagCode::index_out_of_bounds,
        "index " + std::to_string(index) + " in dimension " + std::to_string(d) + " of the view '" +
            p_.buffer(view).name + "' " + shape_text(p_, p_.buffer(view).shape) + " is outside",
        "an element of a view has indices from 0 to below its extents");
}

std::optional<int64_t> ViewPlaces::constant(ExprId e) const {
  int64_t value = 0;
  return p_.exprs.is_const_int(e, &value) ? std::optional(value) : std::nullopt;
}

void ViewPlaces::check_constant(BufferId view, ExprId offset, int64_t extent, size_t d) {
  const auto o = constant(offset), end = constant(p_.buffer(view).shape[d]);
  if (is_tensor(view) || !o || !end) return;
  if (*o < 0 || *o + extent > *end) outside(view, *o < 0 ? *o : *o + extent - 1, d);
}

Reshape ViewPlaces::reshape(BufferId view, BufferId of) {
  return {p_, p_.buffer(view).shape, p_.buffer(of).shape, is_tensor(of) ? &bounds_ : nullptr};
}

bool ViewPlaces::ends_with(const TileView& view, ExprId extent, size_t d) {
  const ExprId end = IndexMaker(p_.exprs).add(view.offsets[d], extent);
  return facts_.same(end, p_.buffer(view.of).shape[d]);
}

ExprId ViewPlaces::sliced(const TileView& view, ExprId seen, ExprId extent, size_t d) {
  ExprPool& e = p_.exprs;
  ExprId index = IndexMaker(e).add(seen, view.offsets[d]);
  if (!is_tensor(view.of)) return index;
  if (!ends_with(view, extent, d) && !bounds_.ends_within(seen, 1, extent))
    index = e.select(e.lt(seen, extent), index, e.const_int(-1));
  if (!begins_with(view, d) && !bounds_.not_negative(seen))
    index = e.select(e.le(e.const_int(0), seen), index, e.const_int(-1));
  return index;
}

void ViewPlaces::element(BufferId& buffer, std::vector<ExprId>& indices) {
  while (is_view(buffer)) {
    if (other_width(buffer)) {
      const BufferId tile = tile_of(buffer);
      return error(DiagCode::dtype_mismatch,
                   "an old value goes to the view '" + p_.buffer(buffer).name + "' of " +
                       dtype_name(p_.buffer(buffer).type) + ", and the elements of '" + p_.buffer(tile).name +
                       "' are " + dtype_name(p_.buffer(tile).type),
                   "old values go to elements of memory; name the value, let old = ..., and store that");
    }
    step(buffer, indices);
  }
}

void ViewPlaces::step(BufferId& buffer, std::vector<ExprId>& indices) {
  const TileView& view = draft_.views.at(buffer);
  const std::vector<ExprId> shape = p_.buffer(buffer).shape;
  for (size_t d = 0; d < indices.size(); ++d) check_constant(buffer, indices[d], 1, d);
  if (view.form == TileView::Form::reshape) {
    indices = reshape(buffer, view.of).element(indices);
  } else if (view.form == TileView::Form::transpose) {
    const std::vector<ExprId> seen = indices;
    for (size_t d = 0; d < seen.size(); ++d) indices[static_cast<size_t>(view.order[d])] = seen[d];
  } else if (view.form == TileView::Form::slice) {
    for (size_t d = 0; d < indices.size(); ++d) indices[d] = sliced(view, indices[d], shape[d], d);
  }
  buffer = view.of;
}

ViewPlaces::Box ViewPlaces::box_of(Region r) {
  Box b{std::move(r)};
  for (auto it = draft_.views.find(b.region.buffer); it != draft_.views.end() && b.is_box;
       it = draft_.views.find(b.region.buffer)) {
    const Region& at = b.region;
    const std::vector<ExprId> shape = p_.buffer(at.buffer).shape;
    for (size_t d = 0; d < shape.size(); ++d) check_constant(at.buffer, at.offsets[d], at.extents[d], d);
    step_box(it->second, b, shape);
  }
  return b;
}

void ViewPlaces::step_box(const TileView& view, Box& b, std::span<const ExprId> shape) {
  Region& at = b.region;
  if (other_width(at.buffer)) {
    b.is_box = false;
  } else if (view.form == TileView::Form::reshape) {
    b.is_box = reshape(at.buffer, view.of).box(at);
  } else if (view.form == TileView::Form::transpose) {
    const Region seen = at;
    int64_t before = -1;
    bool changes = false;
    for (size_t d = 0; d < shape.size(); ++d) {
      const auto to = static_cast<size_t>(view.order[d]);
      at.offsets[to] = seen.offsets[d];
      at.extents[to] = seen.extents[d];
      if (seen.extents[d] == 1) continue;
      changes |= view.order[d] < before;
      before = view.order[d];
    }
    b.transposed += changes;
  } else if (view.form == TileView::Form::slice) {
    for (size_t d = 0; d < shape.size(); ++d) {
      b.is_box = b.is_box && (!is_tensor(view.of) || stays(view, at, shape[d], d));
      at.offsets[d] = IndexMaker(p_.exprs).add(at.offsets[d], view.offsets[d]);
    }
  }
  at.buffer = view.of;
}

bool ViewPlaces::stays(const TileView& view, const Region& box, ExprId extent, size_t d) {
  return (begins_with(view, d) || bounds_.not_negative(box.offsets[d])) &&
         (ends_with(view, extent, d) || bounds_.ends_within(box.offsets[d], box.extents[d], extent));
}

}  // namespace tilegen::ir
