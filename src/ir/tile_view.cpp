#include "ir/tile_view.h"

#include <algorithm>
#include <utility>

#include "ir/narrow_stores.h"
#include "ir/op_kinds.h"
#include "ir/store_parts.h"
#include "ir/view_operands.h"
#include "ir/view_places.h"
#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::ir {
namespace {

class ViewResolver : public ViewPlaces {
 public:
  using ViewPlaces::ViewPlaces;

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

 private:
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
      write(s, Store(*store));
    } else {
      tile_op(s, std::get<TileOp>(node));
    }
  }

  // The statement's store, whose expressions are those of tiles.
  void write(StmtId s, Store store) {
    const DType seen = p_.buffer(store.buffer).type;
    if (store.old) {
      const DType old = p_.buffer(store.old->buffer).type;
      element(store.old->buffer, store.old->indices);
      if (const BufferId tile = store.old->buffer; p_.buffer(tile).type != old || (renames(store.buffer)))
        return refuse_type("the old value", old, tile);
    }
    while (is_view(store.buffer) && !other_width(store.buffer)) step(store.buffer, store.indices);
    if (is_view(store.buffer)) return write_parts(s, std::move(store));
    const DType own = p_.buffer(store.buffer).type;
    if (own != seen) {
      if (store.atomic && !same_as_bits(*store.atomic, seen, own))
        return refuse_type("an atomic operation", seen, store.buffer);
      store.value = kept(store.buffer, store.value);
      if (store.expected.valid()) store.expected = kept(store.buffer, store.expected);
      if (const auto old = draft_.old_values.find(s); old != draft_.old_values.end()) {
        const VarId bits = new_name("old", own);
        around_[s].after.push_back(assigned(old->second, p_.exprs.bitcast(seen, p_.exprs.var(bits, own))));
        old->second = bits;
      }
    }
    p_.stmts[s.value].node = std::move(store);
  }
  bool renames(BufferId b) const { return p_.buffer(b).type != p_.buffer(tile_of(b)).type; }
  // What the operation does to bits does not depend on which of the two types they are.
  static bool same_as_bits(AtomicKind kind, DType a, DType b) {
    if (kind == AtomicKind::exchange) return takes_atomic(kind, a) && takes_atomic(kind, b);
    const bool orders = kind == AtomicKind::min || kind == AtomicKind::max;
    return is_integer(a) && is_integer(b) && !orders;
  }

  // An element of more bits than the tile's: each of its parts, the first from the lowest bits. What is
  // stored, and where, is known before the first part changes what that may read. One of fewer bits waits for
  // those beside it (ir/narrow_stores.h).
  void write_parts(StmtId s, Store store) {
    ExprPool& e = p_.exprs;
    const BufferId view = store.buffer, of = draft_.views.at(view).of;
    const DType whole = p_.buffer(view).type, part = p_.buffer(of).type;
    for (size_t d = 0; d < store.indices.size(); ++d) check_constant(view, store.indices[d], 1, d);
    if (store.atomic) return refuse_atomic(view);
    for (BufferId b = of; is_view(b); b = draft_.views.at(b).of)
      if (other_width(b)) return void(two_widths(view, whole));
    if (dtype_bits(whole) < dtype_bits(part)) {
      store.value = e.bitcast(whole, store.value);
      p_.stmts[s.value].node = std::move(store);
      return;
    }
    const ExprId value = kept_name(s, "stored", e.bitcast(whole, store.value));
    for (ExprId& index : store.indices)
      if (!DraftExprs(p_).reads(index).empty()) index = kept_name(s, "at", index);
    const int64_t ratio = width_ratio(whole, part);
    const ExprId first = IndexMaker(e).mul(store.indices.back(), e.const_int(ratio));
    for (int64_t i = 0; i < ratio && errors_.empty(); ++i) {
      Store one{of, store.indices, part_of_value(e, part, value, e.const_int(i))};
      one.indices.back() = IndexMaker(e).add(first, e.const_int(i));
      element(one.buffer, one.indices);
      one.value = kept(one.buffer, one.value);
      if (i == 0)
        p_.stmts[s.value].node = std::move(one);
      else
        around_[s].after.push_back(added(std::move(one)));
    }
  }
  StmtId added(std::variant<Loop, Branch, Store, TileOp> node) {
    p_.stmts.push_back({std::move(node), location_});
    return StmtId(p_.stmts.size() - 1);
  }
  VarId new_name(const std::string& like, DType type) {
    Var v;
    v.name = free_tile_name(p_, draft_, like);
    v.type = type;
    v.location = location_;
    p_.vars.push_back(std::move(v));
    const VarId var(p_.vars.size() - 1);
    draft_.temporaries[var] = false;
    return var;
  }
  StmtId assigned(VarId var, ExprId value) {
    const StmtId s = added(Branch{});
    draft_.assignments[s] = {var, value};
    return s;
  }
  ExprId kept_name(StmtId s, const std::string& like, ExprId value) {
    const VarId var = new_name(like, p_.exprs.type(value));
    around_[s].before.push_back(assigned(var, value));
    return p_.exprs.var(var, p_.exprs.type(value));
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
          "bits are exchanged, and integers added and combined by bits, as those of another type; for others "
          "declare what it updates with the type that is needed here, and read it through a view");
  }
  void refuse_atomic(BufferId view) {
    const BufferId tile = tile_of(view);
    const std::string seen = dtype_name(p_.buffer(view).type);
    error(DiagCode::dtype_mismatch,
          "an atomic operation takes the view '" + p_.buffer(view).name + "' of " + seen +
              ", and the elements of '" + p_.buffer(tile).name + "' are " + dtype_name(p_.buffer(tile).type),
          "it updates one element of memory; declare '" + p_.buffer(tile).name + "' with elements of " +
              seen + ", and read it through a view");
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
    Store store{to.buffer, place(to), op.value};
    if (op.kind != OpKind::fill) {
      const ExprId value = read(op.operands[0].buffer, place(op.operands[0]));
      store.value = p_.exprs.cast(p_.buffer(to.buffer).type, value);
    }
    if (!errors_.empty()) return;
    if (op.kind == OpKind::atomic) store.atomic = static_cast<AtomicKind>(op.attrs[atomic_attr::kind]);
    const StmtId made = added(Store(store));
    loop.body = {made};
    p_.stmts[s.value].node = std::move(loop);
    write(made, std::move(store));
  }

  std::map<StmtId, Around> around_;
};

}  // namespace

std::vector<Diagnostic> resolve_views(Program& p, Draft& draft) {
  if (draft.views.empty()) return {};
  std::vector<Diagnostic> errors = ViewResolver(p, draft).run();
  return errors.empty() ? resolve_narrow_stores(p, draft) : errors;
}

}  // namespace tilegen::ir
