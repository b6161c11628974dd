#include "thread/interleaved.h"

#include <set>

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

std::optional<InterleavedRows> interleaved_rows(const ThreadProgram& p, const Loop& loop) {
  if (loop.form != LoopForm::unrolled || loop.condition || loop.body.size() != 1) return std::nullopt;
  const auto* lanes = std::get_if<Loop>(&p.stmts[loop.body[0].value].node);
  if (!lanes || lanes->form != LoopForm::vectorized || lanes->body.size() != 1) return std::nullopt;
  const auto* store = std::get_if<Store>(&p.stmts[lanes->body[0].value].node);
  if (!store || !only_copies_on_chip(p, *store)) return std::nullopt;
  InterleavedRows found{loop.var, lanes->var, 1, 1, store};
  if (!p.exprs.is_const_int(loop.extent, &found.rows) || !p.exprs.is_const_int(lanes->extent, &found.lanes) ||
      (found.rows != 2 && found.rows != 4) || coefficient_of(p, loop.var, store->index) != 1 ||
      coefficient_of(p, lanes->var, store->index) != found.rows)
    return std::nullopt;
  return found;
}

}  // namespace tilegen::thread
