// The bounds of an op's accesses, taken together for the whole block: where vectors would need a predicate
// per element, blocks inside the tensors take a path without predicates.
#include "lower/kernel_lowering.h"
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

}  // namespace

void KernelLowering::record_condition(ExprId condition) {
  ir::ExprPool& e = out_.exprs;
  const ir::ExprNode n = e[condition];
  if (n.op == ir::ExprOp::logical_and) {
    record_condition(n.a);
    record_condition(n.b);
  } else if ((n.op == ir::ExprOp::lt || n.op == ir::ExprOp::le) && e.type(n.a) == ir::DType::i64) {
    if (const auto difference = arith::exact_difference(ctx_, n.a, n.b))
      bounds_.push_back(
          {simplified(arith::from_affine(ctx_, *difference)), e.const_int(n.op == ir::ExprOp::lt ? 0 : 1)});
  }
}

// Along a dimension with padding the last point is that before it, not the last that the digits reach.
// False where the index leaves i64 on the way there.
bool KernelLowering::settle_padded(const Nest& nest, bool upper, ExprId& index, int64_t& further) {
  for (size_t d = 0; d < nest.extents.size(); ++d) {
    if (nest.extents[d] == 0) continue;
    const auto point = arith::to_affine(ctx_, nest.point[d]), whole = arith::to_affine(ctx_, index);
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
    index = simplified(arith::from_affine(ctx_, rest));
  }
  return true;
}

// The bound at the point of the nest where it is hardest to keep; nothing when that depends on more than the
// nest's variables. Indices grow or fall along every variable of the nest, so that point is a corner of its
// box: `further` elements from the first point. The way there is taken off the extent, not added to an index
//   that may be any number.
std::optional<ExprId> KernelLowering::extremal_index(const Bound& bound, const Nest& nest) {
  ir::ExprPool& e = out_.exprs;
  ExprId index = bound.index;
  int64_t further = 0;
  if (!settle_padded(nest, bound.extent.valid(), index, further)) return std::nullopt;
  auto settle = [&](VarId var) {
    if (!arith::depends_on(e, index, var)) return true;
    const auto split = arith::split_affine(ctx_, index, var);
    if (!split || !split->stride) return false;
    const bool last = (*split->stride > 0) == bound.extent.valid();
    if (last && !go_further(*split->stride, ctx_.facts_of(var)->range.hi, further)) return false;
    index = simplified(split->rest);
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
    if (!out_.memory(n.object).read_only) return std::nullopt;
    for (ExprId place : e.indices(at)) todo.push_back(place);
  }
  if (further == INT64_MIN) return std::nullopt;
  if (!bound.extent) return simplified(e.le(e.const_int(-further), index));
  const ExprId way = e.const_int(further);
  if (!arith::exact_difference(ctx_, bound.extent, way)) return std::nullopt;
  return simplified(e.lt(index, e.sub(bound.extent, way)));
}

ExprId KernelLowering::interior_of_bounds(const Nest& nest) {
  std::set<ExprId> seen;
  ExprId condition;
  for (const Bound& b : bounds_) {
    const auto hardest = extremal_index(b, nest);
    if (!hardest) return ExprId();
    if (seen.insert(*hardest).second) condition = both(condition, *hardest);
  }
  int64_t known = 1;
  if (condition && out_.exprs.is_const_int(condition, &known)) return ExprId();
  return condition;
}

}  // namespace tilegen::lower
