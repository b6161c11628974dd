#include "thread/interleaved.h"

#include <set>

#include "support/checked.h"
#include "thread/perfect_nest.h"

namespace tilegen::thread {

namespace {

bool reads_tiles(const ThreadProgram& p, ir::ExprId id, std::set<ir::ExprId>& seen) {
  if (!id || !seen.insert(id).second) return false;
  const ir::ExprNode& n = p.exprs[id];
  if (n.op == ir::ExprOp::load) {
    if (p.memory(n.object).space != Space::global) return true;
    for (ir::ExprId index : p.exprs.indices(id))
      if (reads_tiles(p, index, seen)) return true;
    return false;
  }
  return reads_tiles(p, n.a, seen) || reads_tiles(p, n.b, seen) || reads_tiles(p, n.c, seen);
}

}  // namespace

bool only_copies_on_chip(const ThreadProgram& p, const Store& store) {
  std::set<ir::ExprId> seen;
  return !store.atomic && !store.predicate && p.memory(store.memory).space != Space::global &&
         !reads_tiles(p, store.value, seen) && !reads_tiles(p, store.index, seen);
}

namespace {

struct RowLoops {
  const Loop* lanes;
  const Store* store;
  int64_t rows = 1, width = 1;
};
std::optional<RowLoops> row_loops(const ThreadProgram& p, const Loop& loop) {
  if (loop.form != LoopForm::unrolled || loop.condition || loop.body.size() != 1) return std::nullopt;
  const auto* lanes = std::get_if<Loop>(&p.stmts[loop.body[0].value].node);
  if (!lanes || lanes->form != LoopForm::vectorized || lanes->body.size() != 1) return std::nullopt;
  const auto* store = std::get_if<Store>(&p.stmts[lanes->body[0].value].node);
  if (!store || !only_copies_on_chip(p, *store)) return std::nullopt;
  RowLoops found{lanes, store};
  if (!p.exprs.is_const_int(loop.extent, &found.rows) || !p.exprs.is_const_int(lanes->extent, &found.width))
    return std::nullopt;
  return found;
}

bool digits_of(const ThreadProgram& p, ir::VarId lane, int64_t unit, ir::ExprId index, int64_t scale,
               LaneDigits& out) {
  const ir::ExprNode& n = p.exprs[index];
  if (coefficient_of(p, lane, index) == 0) return true;
  int64_t factor = 0;
  switch (n.op) {
    case ir::ExprOp::add:
      return digits_of(p, lane, unit, n.a, scale, out) && digits_of(p, lane, unit, n.b, scale, out);
    case ir::ExprOp::mul: {
      const bool right = p.exprs.is_const_int(n.b, &factor);
      if (!right && !p.exprs.is_const_int(n.a, &factor)) return false;
      const auto product = checked_mul(scale, factor);
      return product && digits_of(p, lane, unit, right ? n.a : n.b, *product, out);
    }
    case ir::ExprOp::floordiv:
    case ir::ExprOp::floormod: {
      const ir::ExprNode& inner = p.exprs[n.a];
      if (inner.op != ir::ExprOp::var || inner.var() != lane || !p.exprs.is_const_int(n.b, &factor) ||
          factor != unit)
        return false;
      (n.op == ir::ExprOp::floordiv ? out.words : out.units) += scale;
      return true;
    }
    default:
      return false;
  }
}

}  // namespace

std::optional<InterleavedRows> interleaved_rows(const ThreadProgram& p, const Loop& loop) {
  const auto found = row_loops(p, loop);
  if (!found || (found->rows != 2 && found->rows != 4) ||
      coefficient_of(p, loop.var, found->store->index) != 1 ||
      coefficient_of(p, found->lanes->var, found->store->index) != found->rows)
    return std::nullopt;
  return InterleavedRows{loop.var, found->lanes->var, found->rows, found->width, found->store};
}

std::optional<LaneDigits> lane_digits(const ThreadProgram& p, ir::VarId lane, int64_t unit,
                                      ir::ExprId index) {
  LaneDigits out;
  if (unit > 1) return digits_of(p, lane, unit, index, 1, out) ? std::optional(out) : std::nullopt;
  const auto words = coefficient_of(p, lane, index);
  return words ? std::optional(LaneDigits{*words, 0}) : std::nullopt;
}

std::optional<TransposedRows> transposed_rows(const ThreadProgram& p, const Loop& loop) {
  const auto found = row_loops(p, loop);
  if (!found || (found->rows != 4 && found->rows != 8 && found->rows != 16)) return std::nullopt;
  const int64_t bits = ir::dtype_bits(p.memory(found->store->memory).type);
  if (bits != 8 && bits != 16 && bits != 32) return std::nullopt;
  const int64_t unit = 32 / bits;
  const auto digits = lane_digits(p, found->lanes->var, unit, found->store->index);
  if (!digits || digits->words < found->rows * unit || (unit > 1 && digits->units != 1) ||
      coefficient_of(p, loop.var, found->store->index) != unit || found->width % (found->rows * unit) != 0 ||
      found->width > kMaxTransposedLanes)
    return std::nullopt;
  return TransposedRows{loop.var, found->lanes->var, found->rows, found->width, unit, found->store};
}

}  // namespace tilegen::thread
