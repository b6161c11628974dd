// Copies from global to shared memory that run beside the block's other work: cp.async per vector, zeros
// where the source is outside its tensor.
//
// The copies of an op make one group, closed right after the op; inside a pipelined loop the loop closes it.
// The wait is not emitted here: planting barriers puts it before the first use.
//
// Where copies go to shared memory in the order of lanes (schedule/transport/lane_order_copies.h) the points
// of a thread are places of the tile as if it had no swizzle: it fetches what the swizzle has there.
#include <algorithm>

#include "arith/prove.h"
#include "ir/annotations.h"
#include "ir/copy_groups.h"
#include "lower/addressing.h"
#include "lower/gpu/access_facts.h"
#include "lower/gpu/element_nest.h"
#include "lower/gpu/full_tile.h"
#include "lower/gpu/iteration.h"
#include "lower/iteration.h"
#include "lower/lowering_context.h"
#include "lower/op_lowering.h"
#include "support/diag_codes.h"

namespace tilegen::lower {

OpLowering::Moved OpLowering::moved(int dst) const {
  const auto buffer = [&](int operand) { return tile_op_->operands[static_cast<size_t>(operand)].buffer; };
  return {buffer(1 - dst),
          buffer(dst),
          [this, dst](const Nest& nest, bool of_source) {
            return element_at(of_source ? 1 - dst : dst, nest.point);
          },
          {}};
}

OpLowering::Moved OpLowering::moved(const ir::Loop& loop, const ir::Store& store) const {
  const ir::ExprPool& e = k_.in.program.exprs;
  return {e[store.value].object, store.buffer,
          [&](const Nest& nest, bool of_source) {
            for (size_t i = 0; i < loop.vars.size(); ++i) k_.names.vars[loop.vars[i]] = nest.point[i];
            std::vector<ExprId> indices;
            const std::span<const ExprId> at = of_source ? e.indices(store.value) : std::span(store.indices);
            for (ExprId index : at) indices.push_back(k_.simplified(lower_expr(k_, index)));
            return indices;
          },
          ir::is_asynchronous(k_.in.program.stmt(op_.stmt)) ? ir::guarded_copy(k_.in.program, loop).guard
                                                            : ExprId()};
}

namespace {

// XORs bits of a value of `d` at a tile's address with the swizzle's key: what an involution puts there.
ExprId swizzled_digit(LoweringContext& k, const layout::Digit& d, ExprId value, ExprId key, int64_t low,
                      int64_t end) {
  ir::ExprPool& e = k.out.exprs;
  const int64_t from = std::max(d.stride, low), to = std::min(d.stride * d.extent, end);
  if (from >= to) return value;
  const ExprId unit = e.const_int(from / d.stride);
  const ExprId bits = e.floormod(e.floordiv(key, e.const_int(from / low)), e.const_int(to / from));
  const ExprId high = e.binary(ir::ExprOp::bit_xor, k.simplified(e.floordiv(value, unit)), bits);
  return e.add(e.mul(high, unit), e.floormod(value, unit));
}

// The point of the tile that lies where `place` would without the tile's swizzle. A vector of the nest keeps
// its order: the swizzle moves nothing smaller.
std::vector<ExprId> point_at_place(LoweringContext& k, const layout::Layout& l, std::vector<ExprId> place) {
  const layout::Swizzle& s = l.swizzle();
  if (s.none()) return place;
  ir::ExprPool& e = k.out.exprs;
  const int64_t low = (int64_t{1} << s.base) / l.element_bytes(), end = low << s.bits;
  const ExprId index = layout_index(k, l, 0, place);
  const ExprId key =
      e.floormod(e.floordiv(index, e.const_int(low << s.shift)), e.const_int(int64_t{1} << s.bits));
  std::vector<ExprId> point;
  for (int d = 0; d < l.rank(); ++d) {
    const ExprId whole = place[static_cast<size_t>(d)];
    ExprId sum = e.const_int(0);
    bool moved = false;
    for (const layout::Digit& digit : l.digits()) {
      if (digit.dim != d) continue;
      ExprId value = e.floordiv(whole, e.const_int(digit.weight));
      if (digit.weight * digit.extent < l.padded_extent(d))
        value = e.floormod(value, e.const_int(digit.extent));
      value = k.simplified(value);
      const ExprId other = swizzled_digit(k, digit, value, k.simplified(key), low, end);
      moved |= other != value;
      sum = e.add(sum, e.mul(other, digit.weight));
    }
    point.push_back(moved ? k.simplified(sum) : whole);
  }
  return point;
}

}  // namespace

// Of the iteration, where the tile's place is `place` and the nest is at `point`.
std::vector<ExprId> OpLowering::point_fetched(const layout::Layout& tile, const std::vector<ExprId>& place,
                                              std::vector<ExprId> point) {
  const std::vector<ExprId> held = point_at_place(k_, tile, place);
  for (const ops::ElementAccess& a : op_.view.accesses)
    for (size_t d = 0; a.write && d < a.dim_of.size(); ++d)
      if (a.dim_of[d] >= 0) point[static_cast<size_t>(a.dim_of[d])] = held[d];
  return point;
}

// Copies of `width` elements; nothing where that is not known to be legal. `edges`: there were predicates.
std::optional<thread::Block> OpLowering::async_copies(const Moved& m, int64_t width, bool& edges,
                                                      ExprId* interior) {
  const ir::BufferId from = m.from, to = m.to;
  const int64_t wanted = width * ir::dtype_bytes(k_.in.program.buffer(from).type);
  const std::vector<int>& widths = k_.in.target.async_copy_bytes;
  if (std::find(widths.begin(), widths.end(), wanted) == widths.end()) return std::nullopt;
  ir::ExprPool& e = k_.out.exprs;
  auto mark = k_.ctx.mark();
  k_.walk.bounds.clear();
  if (k_.walk.assumed_interior) k_.ctx.assume(k_.walk.assumed_interior);
  Nest nest = make_thread_nest(k_, *plan_.iteration, width, plan_.iteration->shape(), false);
  const bool vector = !nest.loops.empty() && nest.loops.back().form == thread::LoopForm::vectorized;
  const VarId lane = vector ? nest.loops.back().var : VarId();
  const auto outside = k_.ctx.mark();
  if (const ExprId inside = both(k_, ExprId(), nest.inside)) k_.ctx.assume(inside);  // padding is not copied
  const auto target = m.element(nest, false);
  ExprId dst_index = memory_index(k_, to, target);
  Nest fetched = nest;
  if (k_.in.target.copies_in_lane_order) {
    const layout::Layout& tile = *value_plan(k_, to).memory;
    dst_index = in_slot(k_, value_of(k_, to), layout_index(k_, tile, 0, target));
    fetched.point = point_fetched(tile, target, nest.point);
  }
  const auto source = m.element(fetched, true);
  const ExprId predicate = bounds_predicate(k_, from, source);
  ExprId src_index = memory_index(k_, from, source);
  const MemoryId src_memory = memory_of(k_, from), dst_memory = memory_of(k_, to);
  const int64_t bytes = width * ir::dtype_bytes(k_.out.memory(src_memory).type);
  auto first = [&](MemoryId memory, ExprId index) {
    ExprId rest = index;
    if (vector) {
      const auto split = arith::split_affine(k_.ctx, index, lane);
      if (!split || !split->stride || *split->stride != 1) return ExprId();
      rest = split->rest;
    }
    const bool aligned =
        k_.out.memory(memory).alignment % bytes == 0 &&
        arith::divisor_of(k_.ctx, rest) * ir::dtype_bytes(k_.out.memory(memory).type) % bytes == 0;
    return aligned ? rest : ExprId();
  };
  src_index = first(src_memory, src_index);
  dst_index = first(dst_memory, dst_index);
  const bool by_lane = vector && ((predicate && arith::depends_on(e, predicate, lane)) ||
                                  arith::depends_on(e, nest.inside, lane));
  const ExprId guard = m.guard.valid() ? k_.simplified(lower_expr(k_, m.guard)) : ExprId();
  const bool guarded_by_lane = vector && guard && arith::depends_on(e, guard, lane);
  const bool legal = src_index && dst_index && !guarded_by_lane && (vector || width == 1) && !by_lane;
  std::optional<thread::Block> result;
  if (legal && k_.facts && k_.facts->for_estimate) {
    result.emplace();  // where they need predicates no estimate sees
  } else if (legal) {
    edges = predicate.valid();
    *interior = edges ? interior_of_bounds(k_, nest) : ExprId();
    thread::Block body = {k_.out.add(
        thread::AsyncCopy{dst_memory, dst_index, src_memory, src_index, static_cast<int>(bytes), predicate},
        op_.path)};
    if (!k_.facts) finish_thread_nest(k_, nest, body);
    // Padding and copies of other threads are not copied at all: a condition that is not simplified by
    // itself.
    k_.ctx.rollback(outside);
    if (const ExprId own = both(k_, both(k_, nest.writer, guard), both(k_, ExprId(), nest.inside))) {
      body = {k_.out.add(thread::Branch{own, std::move(body), {}}, op_.path)};
      if (!k_.facts) finish_thread_nest(k_, nest, body);
    }
    result = wrap(k_, nest, 0, nest.loops.size() - (vector ? 1 : 0), std::move(body), op_.path);
  }
  k_.ctx.rollback(mark);
  return result;
}

// The tile's element = the tensor's for every point, as asynchronous copies of planned vectors.
void OpLowering::async_copy_points(const Moved& m) {
  bool edges = false;
  ExprId interior;
  auto copies = async_copies(m, plan_.vector, edges, &interior);
  if (!copies)
    return k_.fail(
        DiagCode::schedule_illegal, op_.path,
        "asynchronous copies of " + std::to_string(plan_.vector) +
            " elements: an access is not known to be aligned to them, or they are not of 4, 8 or 16 bytes",
        "give a smaller `vector` or another engine, or leave them out to have them planned");
  if (k_.condition_search) {
    if (edges) k_.condition_search->found = both(k_, k_.condition_search->found, interior);
    return;
  }
  out_.insert(out_.end(), copies->begin(), copies->end());
}

bool OpLowering::find_async_facts(const Moved& m) {
  plan::OpAccessFacts& facts = facts_of(k_, op_.path);
  std::set<int64_t> legal;
  for (int64_t width = std::max<int64_t>(plan_.vector, 1); width >= 1; width /= 2) {
    const Sizes before = sizes(k_);
    bool edges = false;
    ExprId interior;
    if (async_copies(m, width, edges, &interior)) {
      legal.insert(width);
      if (edges && interior) facts.async_interior.insert(width);
    }
    drop_since(k_, before);
    if (!legal.empty() && !k_.facts->all_widths) break;
  }
  note_widest(k_, op_.path, legal.empty() ? 0 : *legal.rbegin());
  // The loop around may have been peeled: legal is what is legal everywhere.
  if (facts.async_seen)
    std::erase_if(facts.async, [&](int64_t w) { return legal.count(w) == 0; });
  else
    facts.async = std::move(legal);
  facts.async_seen = true;
  // A condition of the program's may hold for whole blocks, which walks tell.
  return k_.facts->beside_copies || may_mask() || facts.async.empty();
}

}  // namespace tilegen::lower
