// The bounds of an op's accesses, taken together for the whole block: where vectors would need a predicate
// per element, blocks inside the tensors take a path without predicates.
#include "lower/gpu/full_tile.h"

#include "arith/prove.h"
#include "lower/addressing.h"
#include "lower/lowering_context.h"
#include "support/checked.h"
#include "thread/perfect_nest.h"

namespace tilegen::lower {

namespace {

// further += stride * steps; false where that leaves i64.
bool go_further(int64_t stride, int64_t steps, int64_t& further) {
  const auto way = checked_mul(stride, steps);
  const auto sum = way ? checked_add(further, *way) : way;
  if (sum) further = *sum;
  return sum.has_value();
}

// Along a dimension with padding the last point is that before it, not the last that the digits reach.
// False where the index leaves i64 on the way there.
bool settle_padded(LoweringContext& k, const Nest& nest, bool upper, ExprId& index, int64_t& further) {
  for (size_t d = 0; d < nest.extents.size(); ++d) {
    if (nest.extents[d] == 0) continue;
    const auto point = arith::to_affine(k.ctx, nest.point[d]), whole = arith::to_affine(k.ctx, index);
    if (!point || !whole || point->constant != 0 || point->terms.empty()) continue;
    const auto factor_of = [&](ExprId term) {
      const auto at = whole->terms.find(term);
      return at == whole->terms.end() ? 0 : at->second;
    };
    const auto& [first, unit] = *point->terms.begin();
    const int64_t factor = factor_of(first) / unit;
    bool follows = factor != 0;
    for (const auto& [term, coefficient] : point->terms)
      follows = follows && checked_mul(factor, coefficient) == factor_of(term);
    if (!follows) continue;
    arith::Affine rest = *whole;
    for (const auto& [term, coefficient] : point->terms) rest.terms.erase(term);
    if ((factor > 0) == upper && !go_further(factor, nest.extents[d] - 1, further)) return false;
    index = k.simplified(arith::from_affine(k.ctx, rest));
  }
  return true;
}

// The bound at the point of the nest where it is hardest to keep; nothing when that depends on more than the
// nest's variables. Indices grow or fall along every variable of the nest, so that point is a corner of its
// box: `further` elements from the first point. The way there is taken off the extent, not added to an index
//   that may be any number.
std::optional<ExprId> extremal_index(LoweringContext& k, const Bound& bound, const Nest& nest) {
  ir::ExprPool& e = k.out.exprs;
  ExprId index = bound.index;
  int64_t further = 0;
  if (!settle_padded(k, nest, bound.extent.valid(), index, further)) return std::nullopt;
  auto settle = [&](VarId var) {
    if (!arith::depends_on(e, index, var)) return true;
    const auto split = arith::split_affine(k.ctx, index, var);
    if (!split || !split->stride) return false;
    const bool last = (*split->stride > 0) == bound.extent.valid();
    if (last && !go_further(*split->stride, k.ctx.facts_of(var)->range.hi, further)) return false;
    index = k.simplified(split->rest);
    return !arith::depends_on(e, index, var);
  };
  for (const NestLoop& l : nest.loops)
    if (!settle(l.var)) return std::nullopt;
  for (const auto& [var, value] : nest.thread_digits)
    if (!settle(var)) return std::nullopt;
  std::vector<ExprId> todo = {index};
  while (!todo.empty()) {
    const ExprId at = todo.back();
    const ir::ExprNode n = e[at];
    todo.pop_back();
    for (ExprId operand : {n.a, n.b, n.c})
      if (operand) todo.push_back(operand);
    if (n.op != ir::ExprOp::load) continue;
    // What nobody writes is the same for all who ask at one place.
    if (!k.out.memory(n.object).read_only) return std::nullopt;
    for (ExprId place : e.indices(at)) todo.push_back(place);
  }
  if (further == INT64_MIN) return std::nullopt;
  if (!bound.extent) return k.simplified(e.le(e.const_int(-further), index));
  const ExprId way = e.const_int(further);
  if (!arith::exact_difference(k.ctx, bound.extent, way)) return std::nullopt;
  return k.simplified(e.lt(index, e.sub(bound.extent, way)));
}

}  // namespace

void record_condition(LoweringContext& k, ExprId condition) {
  ir::ExprPool& e = k.out.exprs;
  const ir::ExprNode n = e[condition];
  if (n.op == ir::ExprOp::logical_and) {
    record_condition(k, n.a);
    record_condition(k, n.b);
  } else if ((n.op == ir::ExprOp::lt || n.op == ir::ExprOp::le) && e.type(n.a) == ir::DType::i64) {
    if (const auto difference = arith::exact_difference(k.ctx, n.a, n.b))
      k.walk.bounds.push_back({k.simplified(arith::from_affine(k.ctx, *difference)),
                               e.const_int(n.op == ir::ExprOp::lt ? 0 : 1)});
  }
}

ExprId interior_of_bounds(LoweringContext& k, const Nest& nest) {
  std::set<ExprId> seen;
  ExprId condition;
  for (const Bound& b : k.walk.bounds) {
    const auto hardest = extremal_index(k, b, nest);
    if (!hardest) return ExprId();
    if (seen.insert(*hardest).second) condition = both(k, condition, *hardest);
  }
  int64_t known = 1;
  if (condition && k.out.exprs.is_const_int(condition, &known)) return ExprId();
  return condition;
}

}  // namespace tilegen::lower
