#include "ir/tile_view.h"

#include <algorithm>
#include <utility>

#include "ir/draft_exprs.h"
#include "ir/op_kinds.h"
#include "ir/store_parts.h"
#include "ir/text.h"
#include "ir/view_operands.h"
#include "ir/view_shape.h"
#include "ir/view_widths.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

class ViewResolver : public ExprRewriter {
 public:
  ViewResolver(Program& p, Draft& draft)
      : ExprRewriter(p.exprs, p.exprs), p_(p), draft_(draft), bounds_(p, draft), facts_(p) {}

  std::vector<Diagnostic> run() {
    for (size_t number = 0; number < p_.kernels.size(); ++number) {
      const Kernel& k = p_.kernels[number];
      number_ = static_cast<int>(number), kernel_ = k.name;
      std::vector<StmtId> all;
      for_each_statement(p_, k.body, [&](StmtId s, int) { all.push_back(s); });
      for (StmtId s : all) {
        location_ = p_.stmts[s.value].location;
        if (errors_.empty()) statement(s);
      }
    }
    insert_around(p_, around_);
    return std::move(errors_);
  }

 protected:
  ExprId rewrite_load(const ExprNode& n, std::span<const ExprId> indices) override {
    return read(n.object, {indices.begin(), indices.end()});
  }

 private:
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
                     "views of another number of bits are only read; store the elements of the tile");
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

  void statement(StmtId s) {
    if (const auto it = draft_.exchanges.find(s); it != draft_.exchanges.end()) move(it->second.lane);
    if (const auto it = draft_.assignments.find(s); it != draft_.assignments.end()) move(it->second.value);
    auto& node = p_.stmts[s.value].node;
    if (auto* loop = std::get_if<Loop>(&node)) {
      move(loop->begin), move(loop->condition);
      for (ExprId& e : loop->extents) move(e);
    } else if (auto* branch = std::get_if<Branch>(&node)) {
      move(branch->condition);
    } else if (auto* store = std::get_if<Store>(&node)) {
      visit_exprs(*store, [&](ExprId& e) { move(e); });
      const DType seen = p_.buffer(store->buffer).type;
      element(store->buffer, store->indices);
      const bool renamed = p_.buffer(store->buffer).type != seen;
      if (renamed && store->atomic) return refuse_type("an atomic operation", seen, store->buffer);
      if (renamed) store->value = kept(store->buffer, store->value);
      if (store->old) {
        const DType old = p_.buffer(store->old->buffer).type;
        element(store->old->buffer, store->old->indices);
        if (p_.buffer(store->old->buffer).type != old) refuse_type("the old value", old, store->old->buffer);
      }
    } else {
      tile_op(s, std::get<TileOp>(node));
    }
  }

  void tile_op(StmtId s, TileOp op) {
    move(op.value);
    for (Region& r : op.operands)
      for (ExprId& e : r.offsets) move(e);
    if (std::any_of(op.operands.begin(), op.operands.end(),
                    [&](const Region& r) { return is_view(r.buffer); }))
      return of_views(s, std::move(op));
    p_.stmts[s.value].node = std::move(op);
  }

  void of_views(StmtId s, TileOp op) {
    const bool moves = op.kind == OpKind::copy || op.kind == OpKind::atomic || op.kind == OpKind::fill;
    TileOp whole = op;
    bool boxes = true;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const Box b = box_of(op.operands[i]);
      whole.operands[i] = b.region;
      const DType seen = p_.buffer(op.operands[i].buffer).type;
      const BufferId tile = tile_of(b.region.buffer);
      const bool renamed = p_.buffer(tile).type != seen;
      if (renamed && op.kind == OpKind::atomic && i == 1)
        return refuse_type("an atomic operation", seen, tile);
      if (renamed && op.kind == OpKind::fill && same_bits(seen, p_.buffer(tile).type))
        whole.value = kept(tile, op.value);
      else if (renamed)
        boxes = boxes && !moves;
      const bool as_seen = moves && (b.transposed == 0 || op.kind == OpKind::fill);
      const bool fits =
          b.is_box && (as_seen || operand_fits(whole, i, op.operands[i], b.region, b.transposed));
      if (moves)
        boxes = boxes && fits;
      else if (renamed || !fits)
        if (!in_tile(s, op, whole, i)) return;
    }
    if (!errors_.empty()) return;
    if (moves && op.kind != OpKind::fill) {
      if (!correspond(op.operands[0], op.operands[1])) return mismatch(op, "");
      boxes = boxes && correspond(whole.operands[0], whole.operands[1]);
    }
    if (boxes)
      p_.stmts[s.value].node = std::move(whole);
    else
      element_by_element(s, op);
  }

  // The operation takes a tile of the view's elements, which loops beside it copy from the view and to it.
  bool in_tile(StmtId s, const TileOp& op, TileOp& whole, size_t operand) {
    const Region& seen = op.operands[operand];
    const MemScope scope = p_.buffer(tile_of(seen.buffer)).scope;
    if (scope != MemScope::shared && scope != MemScope::fragment) return refuse(op, operand), false;
    const Region tile = add_operand_tile(p_, draft_, seen, number_, location_);
    const std::string label =
        free_label(p_, p_.kernels[static_cast<size_t>(number_)], p_.buffer(tile.buffer).name);
    const auto copied = [&](const Region& from, const Region& to, Block& into, std::string name) {
      into.push_back(add_copy(p_, from, to, location_, std::move(name)));
      const TileOp copy = *p_.as<TileOp>(into.back());
      element_by_element(into.back(), copy);
    };
    if (reads_operand(op, operand)) copied(seen, tile, around_[s].before, label);
    if (op_row(op.kind).operands[operand].access != Access::read)
      copied(tile, seen, around_[s].after, reads_operand(op, operand) ? "" : label);
    whole.operands[operand] = tile;
    return errors_.empty();
  }

  void refuse(const TileOp& op, size_t operand) {
    const OpRow& row = op_row(op.kind);
    const BufferId tile = tile_of(op.operands[operand].buffer);
    error(DiagCode::shape_mismatch,
          std::string(row.text) + "'s operand '" + std::string(row.operands[operand].name) + "', " +
              shape_text(op.operands[operand].extents) + " of the view '" +
              p_.buffer(op.operands[operand].buffer).name + "', is no box of these dimensions of the tile '" +
              p_.buffer(tile).name + "' " + shape_text(p_, p_.buffer(tile).shape),
          "allocate the tile as " + std::string(row.text) +
              " needs it and name views of it where it is copied and in parallel loops");
  }

  void refuse_type(std::string_view what, DType seen, BufferId tile) {
    error(DiagCode::dtype_mismatch,
          std::string(what) + " takes a view of type " + dtype_name(seen) + " of '" + p_.buffer(tile).name +
              "', whose elements are " + dtype_name(p_.buffer(tile).type),
          "it updates elements of memory in their own type; declare what it updates with the type that is "
          "needed here, and read it through a view");
  }

  void mismatch(const TileOp& op, const std::string& more) {
    const auto text = [&](size_t i) {
      return p_.buffer(op.operands[i].buffer).name + shape_text(op.operands[i].extents);
    };
    error(DiagCode::shape_mismatch,
          "src " + text(0) + " and dst " + text(1) + " have different extents" + more,
          "give both the same extents; when the ranks differ, dimensions of extent 1 may be left out");
  }

  // A copy, a fill or an atomic operation as a parallel loop.
  void element_by_element(StmtId s, const TileOp& op) {
    const Region& to = op.operands.back();
    Loop loop{LoopKind::parallel, {}, p_.exprs.const_int(0), {}};
    const Shape extents = several(to.extents);
    if (several(op.operands[0].extents) != extents) return mismatch(op, ", and a view is no box of its tile");
    for (int64_t extent : extents) loop.extents.push_back(p_.exprs.const_int(extent));
    if (extents.empty()) loop.extents.push_back(p_.exprs.const_int(1));
    for (size_t i = 0; i < loop.extents.size(); ++i) {
      Var v;
      v.name = free_tile_name(p_, draft_, std::string(1, static_cast<char>('i' + i % 8)));
      v.location = location_;
      loop.vars.push_back(VarId(p_.vars.size()));
      p_.vars.push_back(std::move(v));
      bounds_.add(loop.vars.back(), loop.extents[i]);
    }
    const auto place = [&](const Region& r) {
      std::vector<ExprId> at = r.offsets;
      size_t next = 0;
      for (size_t d = 0; d < at.size(); ++d)
        if (r.extents[d] != 1) at[d] = IndexMaker(p_.exprs).add(at[d], p_.exprs.var(loop.vars[next++]));
      return at;
    };
    Store store;
    store.buffer = to.buffer;
    store.indices = place(to);
    element(store.buffer, store.indices);
    if (!errors_.empty()) return;
    store.value = op.value;
    if (op.kind != OpKind::fill) {
      const ExprId value = read(op.operands[0].buffer, place(op.operands[0]));
      store.value = p_.exprs.cast(p_.buffer(to.buffer).type, value);
    }
    store.value = kept(store.buffer, store.value);
    if (op.kind == OpKind::atomic) store.atomic = static_cast<AtomicKind>(op.attrs[atomic_attr::kind]);
    loop.body = {StmtId(p_.stmts.size())};
    p_.stmts.push_back({std::move(store), location_});
    p_.stmts[s.value].node = std::move(loop);
  }

  Program& p_;
  Draft& draft_;
  std::map<StmtId, Around> around_;
  IndexBounds bounds_;
  ExtentFacts facts_;
  std::string kernel_;
  int number_ = 0;  // of the kernel
  SourceLocation location_;
  std::vector<Diagnostic> errors_;
};

}  // namespace

std::vector<Diagnostic> resolve_views(Program& p, Draft& draft) {
  if (draft.views.empty()) return {};
  return ViewResolver(p, draft).run();
}

}  // namespace tilegen::ir
