// Where the elements and the boxes of views lie in their tiles.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/draft_exprs.h"
#include "ir/text.h"
#include "ir/tile_view.h"
#include "ir/view_extents.h"
#include "ir/view_operands.h"
#include "ir/view_shape.h"
#include "ir/view_widths.h"
#include "support/diag_codes.h"

namespace tilegen::ir {

// requires: views that are not resolved. refuses: elements outside of a tile's view, and views whose tile has
// elements of another width where an element of the tile is asked for.
class ViewPlaces : public ExprRewriter {
 public:
  ViewPlaces(Program& p, Draft& draft)
      : ExprRewriter(p.exprs, p.exprs), p_(p), draft_(draft), bounds_(p, draft), facts_(p) {}

 protected:
  ExprId rewrite_load(const ExprNode& n, std::span<const ExprId> indices) override {
    return read(n.object, {indices.begin(), indices.end()});
  }

  // An element of a view, as its type has it; and what the tile keeps of such a one.
  ExprId read(BufferId view, std::vector<ExprId> at) {
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
  // Of a view without other widths, or a tile.
  ExprId narrow(BufferId view, std::vector<ExprId> at) {
    const DType type = p_.buffer(view).type;
    element(view, at);
    return p_.exprs.bitcast(type, p_.exprs.load(view, p_.buffer(view).type, at));
  }
  ExprId two_widths(BufferId view, DType type) {
    error(DiagCode::dtype_mismatch,
          "'" + p_.buffer(view).name + "' reads a view of another number of bits than its tile's",
          "name it of the tile itself, whose elements have " +
              std::to_string(dtype_bits(p_.buffer(tile_of(view)).type)) + " bits");
    return p_.exprs.const_number(0, type);
  }
  ExprId kept(BufferId tile, ExprId value) { return p_.exprs.bitcast(p_.buffer(tile).type, value); }

  bool is_view(BufferId b) const { return draft_.views.contains(b); }
  bool other_width(BufferId view) const { return has_other_width(p_, draft_.views.at(view)); }
  BufferId tile_of(BufferId b) const {
    while (is_view(b)) b = draft_.views.at(b).of;
    return b;
  }
  void move(ExprId& e) {
    if (e.valid()) e = rewrite(e);
  }

  void error(DiagCode code, std::string message, std::string hint) {
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
  void outside(BufferId view, int64_t index, size_t d) {
    error(DiagCode::index_out_of_bounds,
          "index " + std::to_string(index) + " in dimension " + std::to_string(d) + " of the view '" +
              p_.buffer(view).name + "' " + shape_text(p_, p_.buffer(view).shape) + " is outside",
          "an element of a view has indices from 0 to below its extents");
  }

  using Extents = std::vector<ExprId>;
  bool is_tensor(BufferId b) const { return p_.buffer(b).scope == MemScope::global; }
  std::optional<int64_t> constant(ExprId e) const {
    int64_t value = 0;
    return p_.exprs.is_const_int(e, &value) ? std::optional(value) : std::nullopt;
  }
  // Beyond a view of a tensor there is nothing: reads give 0, writes are dropped. Beyond one of a tile none
  // may be.
  void check_constant(BufferId view, ExprId offset, int64_t extent, size_t d) {
    const auto o = constant(offset), end = constant(p_.buffer(view).shape[d]);
    if (is_tensor(view) || !o || !end) return;
    if (*o < 0 || *o + extent > *end) outside(view, *o < 0 ? *o : *o + extent - 1, d);
  }
  Reshape reshape(BufferId view, BufferId of) {
    return {p_, p_.buffer(view).shape, p_.buffer(of).shape, is_tensor(of) ? &bounds_ : nullptr};
  }
  // What leaves the slice of a tensor there leaves the tensor, too.
  bool begins_with(const TileView& view, size_t d) const { return constant(view.offsets[d]) == 0; }
  bool ends_with(const TileView& view, ExprId extent, size_t d) {
    const ExprId end = IndexMaker(p_.exprs).add(view.offsets[d], extent);
    return facts_.same(end, p_.buffer(view.of).shape[d]);
  }
  ExprId sliced(const TileView& view, ExprId seen, ExprId extent, size_t d) {
    ExprPool& e = p_.exprs;
    ExprId index = IndexMaker(e).add(seen, view.offsets[d]);
    if (!is_tensor(view.of)) return index;
    if (!ends_with(view, extent, d) && !bounds_.ends_within(seen, 1, extent))
      index = e.select(e.lt(seen, extent), index, e.const_int(-1));
    if (!begins_with(view, d) && !bounds_.not_negative(seen))
      index = e.select(e.le(e.const_int(0), seen), index, e.const_int(-1));
    return index;
  }

  // Of the tile in the place of the view.
  void element(BufferId& buffer, std::vector<ExprId>& indices) {
    while (is_view(buffer)) {
      if (other_width(buffer)) {
        const BufferId tile = tile_of(buffer);
        return error(DiagCode::dtype_mismatch,
                     "the view '" + p_.buffer(buffer).name + "' of " + dtype_name(p_.buffer(buffer).type) +
                         " is written, and the elements of '" + p_.buffer(tile).name + "' are " +
                         dtype_name(p_.buffer(tile).type),
                     "old values go to elements of memory; name the value, let old = ..., and store that");
      }
      step(buffer, indices);
    }
  }
  void step(BufferId& buffer, std::vector<ExprId>& indices) {
    const TileView& view = draft_.views.at(buffer);
    const Extents shape = p_.buffer(buffer).shape;
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

  struct Box {
    Region region;       // of the tile
    bool is_box = true;  // else elements have to be named one by one
    int transposed = 0;  // times that dimensions of several elements change places
  };
  Box box_of(Region r) {
    Box b{std::move(r)};
    for (auto it = draft_.views.find(b.region.buffer); it != draft_.views.end() && b.is_box;
         it = draft_.views.find(b.region.buffer)) {
      const TileView& view = it->second;
      Region& at = b.region;
      const Extents shape = p_.buffer(at.buffer).shape;
      for (size_t d = 0; d < shape.size(); ++d) check_constant(at.buffer, at.offsets[d], at.extents[d], d);
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
    return b;
  }

  // Where the box leaves the slice it leaves the tensor.
  bool stays(const TileView& view, const Region& box, ExprId extent, size_t d) {
    return (begins_with(view, d) || bounds_.not_negative(box.offsets[d])) &&
           (ends_with(view, extent, d) || bounds_.ends_within(box.offsets[d], box.extents[d], extent));
  }

  Program& p_;
  Draft& draft_;
  IndexBounds bounds_;
  ExtentFacts facts_;
  std::string kernel_;
  int number_ = 0;  // of the kernel
  SourceLocation location_;
  std::vector<Diagnostic> errors_;
};

}  // namespace tilegen::ir
