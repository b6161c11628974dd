#include "lower/gpu/mask_parts.h"

#include <algorithm>
#include <tuple>

#include "arith/interval.h"
#include "arith/prove.h"
#include "lower/addressing.h"
#include "lower/gpu/iteration.h"
#include "lower/gpu/masks.h"
#include "lower/iteration.h"
#include "lower/lowering_context.h"
#include "lower/statement_exprs.h"
#include "support/checked.h"
#include "thread/perfect_nest.h"

namespace tilegen::lower {

namespace {

// Elements of a thread below which a part is not worth its branch.
constexpr int64_t kPartElements = 8;
// Operations of a part's branches.
constexpr int64_t kBranchOperations = 4;
// Sums of what lies here do not wrap.
constexpr arith::Interval kNear{-(int64_t{1} << 56), int64_t{1} << 56};

// The comparisons of one difference of indices, rest + own, with constants. `own` is what changes inside a
// part: between its elements, and between the lanes of a warp.
struct WarpMask {
  arith::Affine rest;  // of the part's number, the warp's, and what is the same for the block
  int64_t above = 0;   // rest >= above: every comparison is known, and the same,
  int64_t below = 0;   // rest <= below: and so here
};

class MaskFinder {
 public:
  MaskFinder(LoweringContext& k, const Nest& nest) : k_(k), e_(k.out.exprs), nest_(nest) {}

  std::optional<WarpMask> find(const thread::Block& body) {
    for (ExprId condition : mask_conditions(k_, body)) comparisons(condition);
    if (!found_) return std::nullopt;
    WarpMask mask{difference_, above_, below_};
    int64_t low = 0, high = 0;  // of `own`
    const VarId part = nest_.loops.front().var;
    bool by_part = false;
    for (auto it = mask.rest.terms.begin(); it != mask.rest.terms.end();) {
      const auto& [term, factor] = *it;
      const bool is_var = e_[term].op == ir::ExprOp::var;
      const VarId var = is_var ? e_[term].var() : VarId();
      by_part = by_part || (is_var && var == part);
      if (!is_var || var == part || nest_.warp_digits.count(var) || !inside(var)) {
        if (!is_var && of_thread(term)) return std::nullopt;
        ++it;
        continue;
      }
      const auto reach = checked_mul(factor, k_.ctx.facts_of(var)->range.hi);
      if (!reach || !kNear.contains(*reach)) return std::nullopt;
      (*reach < 0 ? low : high) += *reach;
      it = mask.rest.terms.erase(it);
    }
    mask.above -= low;
    mask.below -= high;
    return by_part ? std::optional(mask) : std::nullopt;
  }

 private:
  // Loops and digits of the nest.
  bool inside(VarId var) const {
    return nest_.thread_digits.count(var) || std::any_of(nest_.loops.begin(), nest_.loops.end(),
                                                         [&](const NestLoop& l) { return l.var == var; });
  }
  // Differs between the lanes of a warp, for all that is known.
  bool of_thread(ExprId term) const {
    std::vector<ExprId> todo = {term};
    while (!todo.empty()) {
      const ExprId at = todo.back();
      todo.pop_back();
      if (!at) continue;
      const ir::ExprNode& n = e_[at];
      if (n.op == ir::ExprOp::load ||
          (n.op == ir::ExprOp::var && (n.var() == k_.out.thread_var || inside(n.var()))))
        return true;
      for (ExprId operand : {n.a, n.b, n.c}) todo.push_back(operand);
    }
    return false;
  }

  void comparisons(ExprId condition) {
    const ir::ExprNode n = e_[condition];
    switch (n.op) {
      case ir::ExprOp::logical_and:
      case ir::ExprOp::logical_or:
        comparisons(n.a);
        return comparisons(n.b);
      case ir::ExprOp::logical_not:
        return comparisons(n.a);
      case ir::ExprOp::lt:  // b - a >= 1
        return compared(n, 1, 0);
      case ir::ExprOp::le:  // b - a >= 0
        return compared(n, 0, -1);
      case ir::ExprOp::eq:
      case ir::ExprOp::ne:  // neither below 0 nor above
        return compared(n, 1, -1);
      default:
        return;
    }
  }

  // The comparison is known where b - a >= above and where b - a <= below.
  void compared(const ir::ExprNode& n, int64_t above, int64_t below) {
    if (e_.type(n.a) != ir::DType::i64) return;
    auto difference = arith::exact_difference(k_.ctx, n.b, n.a);
    if (!difference || difference->terms.empty() || !kNear.contains(difference->constant)) return;
    above -= difference->constant;
    below -= difference->constant;
    difference->constant = 0;
    if (found_ && difference->terms != difference_.terms) {
      for (auto& [term, factor] : difference->terms) factor = -factor;
      if (difference->terms != difference_.terms) return;  // stays open
      std::tie(above, below) = std::pair(-below, -above);
    }
    above_ = found_ ? std::max(above_, above) : above;
    below_ = found_ ? std::min(below_, below) : below;
    difference_ = std::move(*difference);
    found_ = true;
  }

  LoweringContext& k_;
  ir::ExprPool& e_;
  const Nest& nest_;
  arith::Affine difference_;
  int64_t above_ = 0, below_ = 0;
  bool found_ = false;
};

int64_t elements_of(const Nest& nest) {
  int64_t elements = 1;
  for (const NestLoop& l : nest.loops) elements *= l.extent;
  return elements;
}

// Of a thread for one element: what is left of the stores once loops are written out, and constants and
// places of registers are known. A transcendental function has a quarter of the rate of others.
class ElementWork {
 public:
  ElementWork(const LoweringContext& k, const Nest& nest) : k_(k), e_(k.out.exprs), nest_(nest) {}
  int64_t operator()(const thread::Block& body) {
    for (thread::StmtId id : body)
      if (const auto* store = std::get_if<thread::Store>(&k_.out.stmts[id.value].node)) {
        visit(store->value);
        visit(store->predicate);
      }
    return sum_;
  }

 private:
  struct Kind {
    bool per_element = false, computed = false;  // differs between elements; is no constant
  };
  Kind visit(ExprId at) {
    if (!at) return {};
    if (const auto it = seen_.find(at); it != seen_.end()) return it->second;
    const ir::ExprNode n = e_[at];
    Kind kind;
    if (n.op == ir::ExprOp::var) {
      const bool own = std::any_of(nest_.loops.begin(), nest_.loops.end(),
                                   [&](const NestLoop& l) { return l.var == n.var(); });
      return seen_[at] = {own, !own};
    }
    if (n.op == ir::ExprOp::load) return seen_[at] = loaded(at, n);
    for (ExprId operand : {n.a, n.b, n.c}) {
      const Kind of = visit(operand);
      kind = {kind.per_element || of.per_element, kind.computed || of.computed};
    }
    if (kind.per_element && kind.computed) sum_ += ir::expr_class(n.op) == ir::ExprClass::math ? 4 : 1;
    return seen_[at] = kind;
  }
  // Places are folded into the instruction.
  Kind loaded(ExprId at, const ir::ExprNode& n) {
    Kind kind{false, true};
    for (ExprId index : e_.indices(at))
      for (const NestLoop& l : nest_.loops) kind.per_element |= arith::depends_on(e_, index, l.var);
    if (kind.per_element && !k_.out.memory(n.object).in_registers) ++sum_;
    return kind;
  }
  const LoweringContext& k_;
  const ir::ExprPool& e_;
  const Nest& nest_;
  int64_t sum_ = 0;
  std::map<ExprId, Kind> seen_;
};

class PartWalk {
 public:
  PartWalk(LoweringContext& k, const Walk& walk, int64_t parts, int64_t width, const EmitPoint& emit)
      : k_(k), e_(k.out.exprs), walk_(walk), emit_(emit), parts_(parts), width_(width) {}

  Attempt run() {
    Attempt result;
    result.legal = false;
    k_.walk.bounds.clear();
    k_.walk.staged = false;
    const auto mark = k_.ctx.mark();
    if (k_.walk.assumed_interior) k_.ctx.assume(k_.walk.assumed_interior);
    nest_ = make_thread_nest(k_, walk_.iteration, width_, walk_.iteration.shape(), false, parts_);
    thread::Block open = body();
    const auto mask = nest_.loops.size() > 1 ? MaskFinder(k_, nest_).find(open) : std::nullopt;
    if (mask && in_registers(open) && !k_.walk.staged) {
      mask_ = *mask;
      result = joined(std::move(open));
    }
    k_.ctx.rollback(mark);
    return result;
  }

  // Of a walk that was legal: averages over warps. What is the same for the block adds nothing to the
  // difference, as in a tile on the diagonal.
  plan::MaskParts expected() const {
    const int64_t lanes = k_.in.target.warp, warps = std::max<int64_t>(1, k_.out.threads / lanes);
    int64_t known = 0;
    for (int64_t warp = 0; warp < warps; ++warp)
      for (int64_t part = 0; part < parts_; ++part) {
        int64_t at = mask_.rest.constant;
        for (const auto& [term, factor] : mask_.rest.terms) {
          if (e_[term].op != ir::ExprOp::var) continue;
          const VarId var = e_[term].var();
          const auto digit = nest_.warp_digits.find(var);
          if (var == nest_.loops.front().var) at += factor * part;
          if (digit != nest_.warp_digits.end())
            at += factor * (warp * lanes / digit->second.stride % digit->second.extent);
        }
        known += kBranchOperations + (at >= mask_.above   ? above_operations_
                                      : at <= mask_.below ? below_operations_
                                                          : open_operations_);
      }
    return {parts_, elements_of(nest_), parts_ * open_operations_, known / warps};
  }

 private:
  thread::Block body() {
    thread::Block result;
    k_.walk.no_padding = both(k_, ExprId(), nest_.inside);
    emit_(nest_, result);
    k_.walk.no_padding = ExprId();
    return result;
  }

  bool in_registers(const thread::Block& body) const {
    return std::all_of(body.begin(), body.end(), [&](thread::StmtId id) {
      const auto* store = std::get_if<thread::Store>(&k_.out.stmts[id.value].node);
      return store && k_.out.memory(store->memory).in_registers;
    });
  }

  // Adds what vectors of the form are to the result. `operations`: of a thread, in a part.
  thread::Block form(thread::Block body, Attempt& result, int64_t& operations) {
    operations = ElementWork(k_, nest_)(body) * (elements_of(nest_) / parts_);
    if (width_ > 1) {
      Attempt own;
      inspect_vector(k_, nest_, body, own);
      result.legal = result.legal && own.legal && !own.lane_bounds;
      result.wide = result.wide || own.wide;
    }
    if (body.empty()) return body;
    return wrap(k_, nest_, 1, nest_.loops.size(), std::move(body), walk_.origin);
  }
  thread::Block known_form(ExprId condition, Attempt& result, int64_t& operations) {
    const auto mark = k_.ctx.mark();
    k_.ctx.assume(condition);
    thread::Block own = body();
    fold_mask(k_, own);
    k_.ctx.rollback(mark);
    return form(std::move(own), result, operations);
  }

  Attempt joined(thread::Block open) {
    Attempt result;
    const ExprId rest = arith::from_affine(k_.ctx, mask_.rest);
    const ExprId above = k_.simplified(e_.le(e_.const_int(mask_.above), rest)),
                 below = k_.simplified(e_.le(rest, e_.const_int(mask_.below)));
    shorten_mask(k_, nest_, open);
    const thread::Block undecided = form(std::move(open), result, open_operations_),
                        over = known_form(above, result, above_operations_),
                        under = known_form(below, result, below_operations_);
    const thread::StmtId second = k_.out.add(thread::Branch{below, under, undecided}, walk_.origin),
                         first = k_.out.add(thread::Branch{above, over, {second}}, walk_.origin);
    finish_thread_nest(k_, nest_, {first});
    result.block = wrap(k_, nest_, 0, 1, {first}, walk_.origin);
    return result;
  }

  LoweringContext& k_;
  ir::ExprPool& e_;
  const Walk& walk_;
  const EmitPoint& emit_;
  const int64_t parts_, width_;
  Nest nest_;
  WarpMask mask_;
  int64_t open_operations_ = 0, above_operations_ = 0, below_operations_ = 0;  // of a thread, in one part
};

}  // namespace

Attempt walk_in_parts(LoweringContext& k, const Walk& walk, int64_t parts, int64_t width,
                      const EmitPoint& emit) {
  return PartWalk(k, walk, parts, width, emit).run();
}

std::optional<plan::MaskParts> find_mask_parts(LoweringContext& k, const Walk& walk, int64_t width,
                                               const EmitPoint& emit) {
  if (!walk.may_mask) return std::nullopt;
  const Sizes before = sizes(k);
  const auto mark = k.ctx.mark();
  const Nest whole = make_thread_nest(k, walk.iteration, width, walk.iteration.shape(), false);
  k.ctx.rollback(mark);
  int64_t parts = whole.loops.size() > 1 ? whole.loops.front().extent : 1;
  while (parts > 1 && (elements_of(whole) / parts < kPartElements || whole.loops.front().extent % parts != 0))
    --parts;
  drop_since(k, before);
  if (parts <= 1) return std::nullopt;
  PartWalk by_parts(k, walk, parts, width, emit);
  const bool legal = by_parts.run().legal;
  std::optional<plan::MaskParts> found;
  if (legal) found = by_parts.expected();
  drop_since(k, before);
  return found;
}

}  // namespace tilegen::lower
