// Masks: work that depends on where an element lies, as in select(key <= query, score, -inf). Most blocks lie
// on one side of the mask, where the condition is the same for every element: they take a path on which it is
// known, and where nothing is left to do, none.
#include "lower/gpu/masks.h"

#include <algorithm>

#include "arith/interval.h"
#include "arith/prove.h"
#include "lower/addressing.h"
#include "lower/gpu/element_nest.h"
#include "lower/gpu/full_tile.h"
#include "lower/gpu/iteration.h"
#include "lower/lowering_context.h"

namespace tilegen::lower {

namespace {

// What lies here may be negated, and small numbers added to it, without wrapping.
constexpr arith::Interval kHalf{-(int64_t{1} << 62), int64_t{1} << 62};

// select(a < b, b, a) and the like: an extremum, however it is written, and no mask.
bool is_extremum(const ir::ExprPool& e, const ir::ExprNode& n) {
  const ir::ExprNode& c = e[n.a];
  return (c.op == ir::ExprOp::lt || c.op == ir::ExprOp::le) &&
         ((n.b == c.a && n.c == c.b) || (n.b == c.b && n.c == c.a));
}

// Conditions of selects below `root`.
void collect_conditions(const ir::ExprPool& e, ExprId root, std::set<ExprId>& seen,
                        std::vector<ExprId>& conditions) {
  std::vector<ExprId> todo = {root};
  while (!todo.empty()) {
    const ExprId id = todo.back();
    todo.pop_back();
    if (!id || !seen.insert(id).second) continue;
    const ir::ExprNode& n = e[id];
    if (n.op == ir::ExprOp::select && !is_extremum(e, n)) conditions.push_back(n.a);
    for (ExprId operand : {n.a, n.b, n.c}) todo.push_back(operand);
  }
}

// Comparisons of indices become comparisons of what differs between a thread's elements, a small number and a
// constant once loops are unrolled, with the rest, brought into the same range: one short comparison an
// element.
class ShortComparisons {
 public:
  ShortComparisons(ir::ExprPool& e, arith::Context& ctx, const Nest& nest) : e_(e), ctx_(ctx), nest_(nest) {}

  ExprId operator()(ExprId root) {
    const ir::ExprNode n = e_[root];
    switch (n.op) {
      case ir::ExprOp::select:
        return e_.select((*this)(n.a), (*this)(n.b), (*this)(n.c));
      case ir::ExprOp::logical_and:
      case ir::ExprOp::logical_or:
        return e_.binary(n.op, (*this)(n.a), (*this)(n.b));
      case ir::ExprOp::lt:
      case ir::ExprOp::le:
        return e_.type(n.a) == ir::DType::i64 ? shortened(n, root) : root;
      default:
        return root;
    }
  }

 private:
  bool differs(ExprId term) const {
    return std::any_of(nest_.loops.begin(), nest_.loops.end(),
                       [&](const NestLoop& l) { return arith::depends_on(e_, term, l.var); });
  }
  // own + rest < 0 (<= 0) with `own` of the element: own < -rest, and -rest counts only inside own's range.
  ExprId shortened(const ir::ExprNode& n, ExprId root) {
    const auto difference = arith::exact_difference(ctx_, n.a, n.b);
    if (!difference) return root;
    arith::Affine own, rest;
    for (const auto& [term, factor] : difference->terms) {
      if (differs(term))
        own.terms.emplace(term, factor);
      else
        rest.terms.emplace(term, -factor);
    }
    rest.constant = -difference->constant;
    const ExprId element = arith::from_affine(ctx_, own);
    const arith::Interval range = arith::range_of(ctx_, element);
    constexpr int64_t kShort = int64_t{1} << 30;
    if (own.terms.empty() || rest.terms.empty() || range.lo < -kShort || range.hi > kShort) return root;
    const ExprId other = arith::from_affine(ctx_, rest);
    if (!arith::range_of(ctx_, other).within(kHalf)) return root;
    const ExprId bound =
        e_.binary(ir::ExprOp::min, e_.binary(ir::ExprOp::max, other, e_.const_int(range.lo - 1)),
                  e_.const_int(range.hi + 1));
    return e_.binary(n.op, element, bound);
  }

  ir::ExprPool& e_;
  arith::Context& ctx_;
  const Nest& nest_;
};

// Comparisons of places in an iteration become comparisons of its number with a bound that is the same in all
// of them: the threads ask after a wait, where a longer computation would stand in everyone's way.
class IterationBounds {
 public:
  IterationBounds(const thread::ThreadProgram& p, ir::ExprPool& e, arith::Context& ctx)
      : p_(p), e_(e), ctx_(ctx) {}

  ExprId operator()(ExprId root) {
    const ir::ExprNode n = e_[root];
    switch (n.op) {
      case ir::ExprOp::logical_and:
      case ir::ExprOp::logical_or:
        return e_.binary(n.op, (*this)(n.a), (*this)(n.b));
      case ir::ExprOp::lt:
      case ir::ExprOp::le:
        return e_.type(n.a) == ir::DType::i64 ? bounded(n, root) : root;
      default:
        return root;
    }
  }

 private:
  // factor * iteration + rest < 0 (<= 0)
  ExprId bounded(const ir::ExprNode& n, ExprId root) {
    auto difference = arith::exact_difference(ctx_, n.a, n.b);
    if (!difference) return root;
    const auto iteration =
        std::find_if(difference->terms.begin(), difference->terms.end(), [&](const auto& term) {
          const ir::ExprNode& x = e_[term.first];
          return x.op == ir::ExprOp::var && p_.vars[x.var().value].kind == ir::VarKind::loop;
        });
    if (iteration == difference->terms.end()) return root;
    const auto [number, factor] = *iteration;
    difference->terms.erase(iteration);
    if (difference->terms.empty()) return root;
    const ExprId rest = arith::from_affine(ctx_, *difference);
    if (!arith::range_of(ctx_, rest).within(kHalf)) return root;
    const int64_t strict = n.op == ir::ExprOp::lt ? 1 : 0;
    if (factor > 0) {
      const ExprId most = e_.sub(e_.const_int(-strict), rest);
      return e_.le(number, e_.floordiv(most, e_.const_int(factor)));
    }
    return e_.lt(e_.floordiv(e_.sub(rest, e_.const_int(1 - strict)), e_.const_int(-factor)), number);
  }

  const thread::ThreadProgram& p_;
  ir::ExprPool& e_;
  arith::Context& ctx_;
};

}  // namespace

std::vector<ExprId> mask_conditions(const LoweringContext& k, const thread::Block& body) {
  std::set<ExprId> seen;
  std::vector<ExprId> conditions;
  for (thread::StmtId id : body)
    if (const auto* store = std::get_if<thread::Store>(&k.out.stmts[id.value].node))
      collect_conditions(k.out.exprs, store->value, seen, conditions);
  return conditions;
}

ExprId unmasked(LoweringContext& k, const Walk& walk, const EmitPoint& emit) {
  if (!walk.may_mask) return ExprId();
  ir::ExprPool& e = k.out.exprs;
  const Sizes before = sizes(k);
  auto mark = k.ctx.mark();
  const bool staged = k.walk.staged;
  Nest nest = make_thread_nest(k, walk.iteration, 1, walk.iteration.shape(), false);
  thread::Block body;
  k.walk.no_padding = both(k, ExprId(), nest.inside);
  emit(nest, body);
  k.walk.no_padding = ExprId();
  k.walk.bounds.clear();
  std::vector<ExprId> conditions = mask_conditions(k, body);
  for (thread::StmtId id : body) {
    const auto* store = std::get_if<thread::Store>(&k.out.stmts[id.value].node);
    if (!store) continue;
    if (!store->predicate || !k.out.memory(store->memory).in_registers) continue;
    const ir::ExprNode n = e[store->predicate];
    if (n.op == ir::ExprOp::lt) conditions.push_back(e.le(n.b, n.a));
    if (n.op == ir::ExprOp::le) conditions.push_back(e.lt(n.b, n.a));
  }
  for (ExprId condition : conditions) record_condition(k, condition);
  const ExprId all = k.walk.bounds.empty() ? ExprId() : interior_of_bounds(k, nest);
  k.ctx.rollback(mark);
  k.walk.staged = staged;
  drop_since(k, before);
  int64_t known = 1;
  return all && e.is_const_int(k.simplified(all), &known) ? ExprId() : all;
}

ExprId iteration_bound(LoweringContext& k, ExprId condition) {
  return IterationBounds(k.out, k.out.exprs, k.ctx)(condition);
}

void shorten_mask(LoweringContext& k, const Nest& nest, const thread::Block& body) {
  ShortComparisons shorten(k.out.exprs, k.ctx, nest);
  for (thread::StmtId id : body)
    if (auto* store = std::get_if<thread::Store>(&k.out.stmts[id.value].node)) {
      const ExprId value = shorten(store->value),
                   predicate = store->predicate ? shorten(store->predicate) : ExprId();
      store->value = value;
      store->predicate = predicate;
    }
}

void fold_mask(LoweringContext& k, thread::Block& body) {
  ir::ExprPool& e = k.out.exprs;
  std::erase_if(body, [&](thread::StmtId id) {
    auto* store = std::get_if<thread::Store>(&k.out.stmts[id.value].node);
    if (!store) return false;
    store->value = k.simplified(store->value);
    if (store->predicate) store->predicate = k.simplified(store->predicate);
    int64_t taken = 1;
    if (store->predicate && e.is_const_int(store->predicate, &taken)) {
      if (taken == 0) return true;
      store->predicate = ExprId();
    }
    const ir::ExprNode& n = e[store->value];
    return n.op == ir::ExprOp::load && n.object == store->memory && e.indices(store->value).size() == 1 &&
           k.simplified(e.indices(store->value)[0]) == k.simplified(store->index);
  });
}

}  // namespace tilegen::lower
