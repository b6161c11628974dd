#include "analysis/iteration_values.h"

#include <algorithm>
#include <utility>

#include "ir/op_kinds.h"
#include "ir/store_parts.h"
#include "ir/transaction_barriers.h"
#include "ir/written_region.h"
#include "ops/element_view.h"

namespace tilegen::analysis {

using ir::BufferId;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

namespace {

constexpr uint16_t kMaxDepth = 512;  // of an element; a deeper one is not followed
constexpr int kMaxChoices = 8;       // nested choices between values of a tile

bool is_commutative(ExprOp op) {
  return op == ExprOp::add || op == ExprOp::mul || op == ExprOp::min || op == ExprOp::max;
}

bool is_choice(ExprOp op) { return op == ExprOp::min || op == ExprOp::max || op == ExprOp::select; }

bool stands_inside(const ir::Program& p, const ir::Block& b, ir::StmtId stmt) {
  bool inside = false;
  ir::for_each_statement(p, b, [&](ir::StmtId s, int) { inside |= s == stmt; });
  return inside;
}

}  // namespace

IterationValues::IterationValues(const ir::Program& p, ir::StmtId loop, ir::StmtId at)
    : p_(p), at_(at), next_(p.buffers.size()) {
  block(p.as<ir::Loop>(loop)->body, after_);
}

// ---- the walk over an iteration ----

void IterationValues::block(const ir::Block& b, Tiles& tiles) {
  for (ir::StmtId s : b) statement(s, tiles);
}

void IterationValues::statement(ir::StmtId s, Tiles& tiles) {
  if (s == at_) {
    found_ = tiles;
    reached_ = true;
  }
  if (const auto* op = p_.as<ir::TileOp>(s)) return tile_op(*op, tiles);
  if (const auto* b = p_.as<ir::Branch>(s)) return branch(*b, tiles);
  if (const auto* one = p_.as<ir::Store>(s)) return store(*one, nullptr, ExprId(), tiles);
  const ir::Loop& loop = *p_.as<ir::Loop>(s);
  if (loop.kind == ir::LoopKind::parallel) return stores(loop.body, &loop, ExprId(), tiles);
  // Its statements see what any of its iterations leaves.
  forget(loop.body, tiles);
  if (!stands_inside(p_, loop.body, at_)) return;
  block(loop.body, tiles);
  forget(loop.body, tiles);
}

void IterationValues::branch(const ir::Branch& branch, Tiles& tiles) {
  const ExprId condition = read(branch.condition, tiles);
  Tiles other = tiles;
  block(branch.then_body, tiles);
  block(branch.else_body, other);
  std::map<BufferId, bool> written;
  for (const Tiles* side : {&tiles, &other})
    for (const auto& [tile, e] : *side) written[tile] = true;
  for (const auto& [tile, is] : written) {
    const Indices any = any_indices(tile);
    set(tile, choice(condition, element(tiles, tile, any), element(other, tile, any)), tiles);
  }
}

void IterationValues::stores(const ir::Block& b, const ir::Loop* points, ExprId condition, Tiles& tiles) {
  for (ir::StmtId s : b) {
    if (const auto* one = p_.as<ir::Store>(s)) {
      store(*one, points, condition, tiles);
    } else if (const auto* branch = p_.as<ir::Branch>(s)) {
      const ExprId holds = read(branch->condition, tiles);
      const auto both = [&](ExprId c) { return condition ? e_.logical_and(condition, c) : c; };
      stores(branch->then_body, points, both(holds), tiles);
      stores(branch->else_body, points, both(e_.unary(ExprOp::logical_not, holds)), tiles);
    }
  }
}

// An element of the tile at any place is what the point of that place stores: where each dimension has a
// variable of its own that goes all along it.
void IterationValues::store(const ir::Store& store, const ir::Loop* points, ExprId condition, Tiles& tiles) {
  if (store.old) set(store.old->buffer, unknown(store.old->buffer), tiles);
  if (!on_chip(store.buffer)) return;
  const std::vector<int64_t> shape = p_.tile_shape(store.buffer);
  std::map<ir::VarId, ExprId> place;
  bool whole = true;
  for (size_t d = 0; d < shape.size(); ++d) {
    const ExprNode n = p_.exprs[store.indices[d]];
    int64_t constant = 1;
    if (shape[d] == 1 && p_.exprs.is_const_int(store.indices[d], &constant) && constant == 0) continue;
    const auto along = points && n.op == ExprOp::var
                           ? std::find(points->vars.begin(), points->vars.end(), n.var())
                           : std::vector<ir::VarId>::const_iterator();
    int64_t extent = 0;
    whole =
        whole && points && n.op == ExprOp::var && along != points->vars.end() &&
        p_.exprs.is_const_int(points->extents[static_cast<size_t>(along - points->vars.begin())], &extent) &&
        extent == shape[d] && place.emplace(n.var(), any_index(d)).second;
    if (!whole) break;
  }
  for (size_t k = 0; whole && points && k < points->vars.size(); ++k) {
    int64_t extent = 0;
    if (place.count(points->vars[k])) continue;
    whole = p_.exprs.is_const_int(points->extents[k], &extent) && extent == 1;
    place.emplace(points->vars[k], e_.const_int(0));
  }
  if (!whole) return set(store.buffer, unknown(store.buffer), tiles);
  Memo memo;
  const auto at_place = [&](const ExprNode& n, const Indices&) {
    const auto it = n.op == ExprOp::var ? place.find(n.var()) : place.end();
    return it == place.end() ? ExprId() : it->second;
  };
  ExprId value = rewrite(e_, read(store.value, tiles), at_place, memo);
  if (condition)
    value = choice(rewrite(e_, condition, at_place, memo), value,
                   element(tiles, store.buffer, any_indices(store.buffer)));
  set(store.buffer, value, tiles);
}

void IterationValues::tile_op(const ir::TileOp& op, Tiles& tiles) {
  if (ir::orders_threads(op.kind)) return;
  const ir::Region& to = ir::written_region(op);
  if (!on_chip(to.buffer)) return;
  ExprId value = unknown(to.buffer);
  if (is_whole(to) && op.kind == ir::OpKind::fill) value = read(op.value, tiles);
  if (is_whole(to) && op.kind == ir::OpKind::copy) value = copied(op, tiles);
  if (is_whole(to) && op.kind == ir::OpKind::reduce && op.flag(ir::reduce_attr::accumulate)) {
    const ExprId old = element(tiles, to.buffer, any_indices(to.buffer));
    const auto kind = static_cast<ir::ReduceKind>(op.attrs[ir::reduce_attr::kind]);
    if (kind == ir::ReduceKind::sum) value = binary(ExprOp::add, old, value);
    if (kind == ir::ReduceKind::min) value = binary(ExprOp::min, old, value);
    if (kind == ir::ReduceKind::max || kind == ir::ReduceKind::absmax)
      value = binary(ExprOp::max, old, value);
  }
  set(to.buffer, value, tiles);
}

void IterationValues::set(BufferId tile, ExprId element, Tiles& tiles) {
  tiles[tile] = e_[element].depth > kMaxDepth ? unknown(tile) : element;
}

void IterationValues::forget(const ir::Block& b, Tiles& tiles) {
  ir::for_each_statement(p_, b, [&](ir::StmtId s, int) {
    if (const auto* store = p_.as<ir::Store>(s))
      ir::visit_written(*store, [&](ir::BufferId b, const auto&) {
        if (on_chip(b)) tiles[b] = unknown(b);
      });
    if (const auto* op = p_.as<ir::TileOp>(s);
        op && !ir::orders_threads(op->kind) && on_chip(ir::written_region(*op).buffer))
      tiles[ir::written_region(*op).buffer] = unknown(ir::written_region(*op).buffer);
  });
}

bool IterationValues::is_whole(const ir::Region& r) const {
  return r.extents == p_.tile_shape(r.buffer) &&
         std::all_of(r.offsets.begin(), r.offsets.end(), [&](ExprId e) {
           int64_t offset = 1;
           return p_.exprs.is_const_int(e, &offset) && offset == 0;
         });
}

// ---- elements ----

IterationValues::Indices IterationValues::any_indices(BufferId tile) {
  Indices any;
  for (size_t d = 0; d < p_.buffer(tile).shape.size(); ++d) any.push_back(any_index(d));
  return any;
}

ExprId IterationValues::unknown(BufferId tile) {
  return e_.load(ir::ObjectId(next_++), p_.buffer(tile).type, any_indices(tile));
}

ExprId IterationValues::element(const Tiles& tiles, BufferId tile, const Indices& indices) {
  const auto it = tiles.find(tile);
  if (it == tiles.end()) return e_.load(tile, p_.buffer(tile).type, indices);
  Memo memo;
  return rewrite(
      e_, it->second,
      [&](const ExprNode& n, const Indices&) {
        const bool any = n.op == ExprOp::var && n.var().value >= p_.vars.size();
        return any ? indices[n.var().value - p_.vars.size()] : ExprId();
      },
      memo);
}

// Of a copy to a whole tile.
ExprId IterationValues::copied(const ir::TileOp& copy, const Tiles& tiles) {
  const ir::Region &from = copy.operands[0], &to = copy.operands[1];
  if (!on_chip(from.buffer) || !is_whole(from)) return unknown(to.buffer);
  const ops::RegionMatch match = ops::match_regions(p_, copy.operands);
  for (const auto& dims : match.dim_of)
    if (std::count(dims.begin(), dims.end(), ops::kIrregularIndex) > 0) return unknown(to.buffer);
  Indices along(match.extents.size(), e_.const_int(0)), indices;
  for (size_t d = 0; d < match.dim_of[1].size(); ++d)
    if (match.dim_of[1][d] >= 0) along[static_cast<size_t>(match.dim_of[1][d])] = any_index(d);
  for (int k : match.dim_of[0]) indices.push_back(k >= 0 ? along[static_cast<size_t>(k)] : e_.const_int(0));
  return e_.cast(p_.buffer(to.buffer).type, element(tiles, from.buffer, indices));
}

// ---- expressions ----

template <class Leaf>
ExprId IterationValues::rewrite(const ir::ExprPool& from, ExprId id, const Leaf& leaf, Memo& memo) {
  if (const auto known = memo.find(id); known != memo.end()) return known->second;
  const ExprNode n = from[id];
  const auto part = [&](ExprId operand) { return rewrite(from, operand, leaf, memo); };
  ExprId made;
  switch (n.op) {
    case ExprOp::const_int:
      made = e_.const_int(n.imm, n.type);
      break;
    case ExprOp::const_float:
      made = e_.const_float(n.float_value(), n.type);
      break;
    case ExprOp::var:
      made = leaf(n, {});
      if (!made) made = e_.var(n.var(), n.type);
      break;
    case ExprOp::load: {
      Indices indices(from.indices(id).begin(), from.indices(id).end());
      for (ExprId& index : indices) index = part(index);
      made = leaf(n, indices);
      if (!made) made = e_.load(n.object, n.type, indices);
      break;
    }
    case ExprOp::cast:
    case ExprOp::bitcast:
      made = e_.operation(n, part(n.a), {}, {});
      break;
    case ExprOp::select:
      made = choice(part(n.a), part(n.b), part(n.c));
      break;
    default:
      made = ir::expr_arity(n.op) == 2   ? binary(n.op, part(n.a), part(n.b))
             : ir::expr_arity(n.op) == 1 ? e_.unary(n.op, part(n.a))
                                         : e_.ternary(n.op, part(n.a), part(n.b), part(n.c));
  }
  return memo[id] = made;
}

// An expression of the program.
ExprId IterationValues::read(ExprId e, const Tiles& tiles) {
  Memo memo;
  return rewrite(
      p_.exprs, e,
      [&](const ExprNode& n, const Indices& indices) {
        if (n.op != ExprOp::load) return ExprId();
        if (on_chip(n.object)) return element(tiles, n.object, indices);
        return p_.buffer(n.object).read_only ? ExprId() : e_.load(ir::ObjectId(next_++), n.type, indices);
      },
      memo);
}

// Operands that may be exchanged stand in one order.
ExprId IterationValues::binary(ExprOp op, ExprId a, ExprId b) {
  if (is_commutative(op) && b < a) std::swap(a, b);
  return e_.binary(op, a, b);
}

ExprId IterationValues::choice(ExprId condition, ExprId a, ExprId b) {
  const ExprNode c = e_[condition];
  if (c.op == ExprOp::logical_not) return choice(c.a, b, a);
  if (c.op == ExprOp::lt || c.op == ExprOp::le) {
    if (c.a == a && c.b == b) return binary(ExprOp::min, a, b);
    if (c.a == b && c.b == a) return binary(ExprOp::max, a, b);
  }
  return e_.select(condition, a, b);
}

// ---- where tiles stay as they were ----

bool IterationValues::is_one_where_unchanged(BufferId tile) {
  if (!reached_) return false;
  const ExprId e = element(found_, tile, any_indices(tile));
  const ExprId same = unchanged(e);
  return same != e && may_be_one(same);
}

// With every value that a tile has next, where it may be what the tile had, in the place of that.
ExprId IterationValues::unchanged(ExprId id) {
  Memo memo;
  const auto visit = [&](const auto& self, ExprId e) -> ExprId {
    if (const auto known = memo.find(e); known != memo.end()) return known->second;
    const ExprNode n = e_[e];
    ExprId made = is_choice(n.op) ? kept_by(e, e, 0) : ExprId();
    if (!made && ir::expr_class(n.op) == ir::ExprClass::cast) made = e_.operation(n, self(self, n.a), {}, {});
    if (!made && n.op == ExprOp::select) made = choice(n.a, self(self, n.b), self(self, n.c));
    if (!made && n.op != ExprOp::load && ir::expr_arity(n.op) == 1) made = e_.unary(n.op, self(self, n.a));
    if (!made && ir::expr_arity(n.op) == 2) made = binary(n.op, self(self, n.a), self(self, n.b));
    if (!made && ir::expr_arity(n.op) == 3)
      made = e_.ternary(n.op, self(self, n.a), self(self, n.b), self(self, n.c));
    return memo[e] = made ? made : e;
  };
  return visit(visit, id);
}

// The element of a tile at the beginning that `e`, one of the choices that make `next`, is: where `next` is
// what the tile has next. Invalid where there is none.
ExprId IterationValues::kept_by(ExprId next, ExprId e, int depth) {
  const ExprNode n = e_[e];
  if (n.op == ExprOp::load && n.object.value < p_.buffers.size()) {
    const Indices indices(e_.indices(e).begin(), e_.indices(e).end());
    return element(after_, n.object, indices) == next ? e : ExprId();
  }
  if (!is_choice(n.op) || depth == kMaxChoices) return ExprId();
  for (ExprId side : {n.op == ExprOp::select ? n.c : n.a, n.b})
    if (const ExprId kept = kept_by(next, side, depth + 1)) return kept;
  return ExprId();
}

bool IterationValues::may_equal(ExprId a, ExprId b, int depth) const {
  if (a == b) return true;
  const ExprNode x = e_[a], y = e_[b];
  if (depth == kMaxChoices) return false;
  if (x.op == ExprOp::select && (may_equal(x.b, b, depth + 1) || may_equal(x.c, b, depth + 1))) return true;
  if (y.op == ExprOp::select && (may_equal(a, y.b, depth + 1) || may_equal(a, y.c, depth + 1))) return true;
  if (x.op != y.op || x.type != y.type) return false;
  if (ir::expr_arity(x.op) == 1 && x.op != ExprOp::load) return may_equal(x.a, y.a, depth + 1);
  return ir::expr_arity(x.op) == 2 && may_equal(x.a, y.a, depth + 1) && may_equal(x.b, y.b, depth + 1);
}

bool IterationValues::may_be_zero(ExprId e) {
  const auto known = zero_.find(e);
  return known != zero_.end() ? known->second : (zero_[e] = is_zero_by_parts(e));
}

bool IterationValues::may_be_one(ExprId e) {
  const auto known = one_.find(e);
  return known != one_.end() ? known->second : (one_[e] = is_one_by_parts(e));
}

bool IterationValues::is_zero_by_parts(ExprId id) {
  const ExprNode n = e_[id];
  switch (n.op) {
    case ExprOp::const_float:
      return n.float_value() == 0;
    case ExprOp::const_int:
      return n.imm == 0;
    case ExprOp::sub:
      return may_equal(n.a, n.b, 0);
    case ExprOp::add: {
      const ExprNode a = e_[n.a], b = e_[n.b];
      return (a.op == ExprOp::neg && may_equal(a.a, n.b, 0)) ||
             (b.op == ExprOp::neg && may_equal(n.a, b.a, 0));
    }
    case ExprOp::mul:
      return may_be_zero(n.a) || may_be_zero(n.b);
    case ExprOp::div:
    case ExprOp::neg:
    case ExprOp::abs:
    case ExprOp::cast:
      return may_be_zero(n.a);
    case ExprOp::log:
    case ExprOp::log2:
      return may_be_one(n.a);
    case ExprOp::select:
      return may_be_zero(n.b) || may_be_zero(n.c);
    default:
      return false;
  }
}

bool IterationValues::is_one_by_parts(ExprId id) {
  const ExprNode n = e_[id];
  switch (n.op) {
    case ExprOp::const_float:
      return n.float_value() == 1;
    case ExprOp::const_int:
      return n.imm == 1;
    case ExprOp::exp:
    case ExprOp::exp2:
      return may_be_zero(n.a);
    case ExprOp::div:
      return may_equal(n.a, n.b, 0) || (may_be_one(n.a) && may_be_one(n.b));
    case ExprOp::mul:
      return may_be_one(n.a) && may_be_one(n.b);
    case ExprOp::sqrt:
    case ExprOp::rsqrt:
    case ExprOp::cast:
      return may_be_one(n.a);
    case ExprOp::select:
      return may_be_one(n.b) || may_be_one(n.c);
    default:
      return false;
  }
}

}  // namespace tilegen::analysis
