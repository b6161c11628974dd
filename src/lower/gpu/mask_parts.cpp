#include "lower/gpu/mask_parts.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <tuple>

#include "arith/interval.h"
#include "arith/prove.h"
#include "cost/expression_work.h"
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
// Operations of the branches of a part, or of all of a warp's points.
constexpr int64_t kBranchOperations = 4;
// Conditions that are known for all of a warp's points, one inside the other: each has forms of the code.
constexpr int kMaxWarpMasks = 2;
// Sums of what lies here do not wrap.
constexpr arith::Interval kNear{-(int64_t{1} << 56), int64_t{1} << 56};

// The comparisons of one difference of indices, rest + own, with constants. `own` is what changes inside a
// part, between its elements and between the lanes of a warp; where the part's number is no term of the rest,
// among all of a warp's points.
struct WarpMask {
  arith::Affine rest;  // of the part's number, the warp's, and what is the same for the block
  int64_t above = 0;   // rest >= above: every comparison is known, and the same,
  int64_t below = 0;   // rest <= below: and so here
  bool by_part = false;

  // The rest can be between the two.
  bool has_gap() const {
    int64_t step = 0;
    for (const auto& [term, factor] : rest.terms) step = std::gcd(step, factor);
    if (step == 0) return true;
    const int64_t next = floor_div(below, step) * step + step;  // the least multiple over `below`
    return next < above;
  }
};

class MaskFinder {
 public:
  MaskFinder(LoweringContext& k, const Nest& nest) : k_(k), e_(k.out.exprs), nest_(nest) {}

  // In the order of the conditions.
  std::vector<WarpMask> find(const thread::Block& body) {
    for (ExprId condition : mask_conditions(k_, body)) comparisons(condition);
    std::vector<WarpMask> masks;
    for (const WarpMask& compared : found_)
      if (auto mask = of_warp(compared)) masks.push_back(std::move(*mask));
    return masks;
  }

 private:
  // What differs between the points of a part is taken out of the rest.
  std::optional<WarpMask> of_warp(WarpMask mask) const {
    int64_t low = 0, high = 0;  // of `own`
    const VarId part = nest_.loops.front().var;
    bool by_warp = true;  // the rest is of the warp alone
    for (auto it = mask.rest.terms.begin(); it != mask.rest.terms.end();) {
      const auto& [term, factor] = *it;
      const bool is_var = e_[term].op == ir::ExprOp::var;
      const VarId var = is_var ? e_[term].var() : VarId();
      mask.by_part = mask.by_part || (is_var && var == part);
      const bool of_warps = is_var && nest_.warp_digits.count(var);
      if (!is_var || var == part || of_warps || !inside(var)) {
        if (!is_var && of_thread(term)) return std::nullopt;
        by_warp = by_warp && of_warps;
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
    return mask.by_part || (by_warp && !mask.rest.terms.empty()) ? std::optional(mask) : std::nullopt;
  }
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
    auto negated = difference->terms;
    for (auto& [term, factor] : negated) factor = -factor;
    for (WarpMask& other : found_) {
      if (other.rest.terms != difference->terms && other.rest.terms != negated) continue;
      if (other.rest.terms == negated) std::tie(above, below) = std::pair(-below, -above);
      other.above = std::max(other.above, above);
      other.below = std::min(other.below, below);
      return;
    }
    found_.push_back({std::move(*difference), above, below});
  }

  LoweringContext& k_;
  ir::ExprPool& e_;
  const Nest& nest_;
  std::vector<WarpMask> found_;  // every difference of indices that is compared
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
  double instructions() const { return instructions_; }
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
    if (kind.per_element && kind.computed) {
      sum_ += ir::expr_class(n.op) == ir::ExprClass::math ? 4 : 1;
      instructions_ += cost::instructions_of(e_, n);
    }
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
  double instructions_ = 0;
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
    if (nest_.loops.size() > 1 && in_registers(open) && !k_.walk.staged) {
      open_operations_ = operations(open);
      Attempt divided;
      thread::Block all = divide(std::move(open), 0, divided, form_);
      if (form_.mask) {
        if (form_.mask->by_part && form_.open) open_operations_ = form_.open->operations;
        finish_thread_nest(k_, nest_, all);
        divided.block = std::move(all);
        result = std::move(divided);
      }
    }
    k_.ctx.rollback(mark);
    return result;
  }

  // Of a walk that was legal: averages over warps. What is the same for the block adds nothing to the
  // difference, as in a tile on the diagonal.
  plan::MaskParts expected() const {
    const int64_t warps = std::max<int64_t>(1, k_.out.threads / k_.in.target.warp);
    int64_t known = 0;
    for (int64_t warp = 0; warp < warps; ++warp)
      for (int64_t part = 0; part < parts_; ++part) known += operations(form_, warp, part);
    return {parts_, elements_of(nest_), parts_ * open_operations_, known / warps,
            static_cast<int64_t>(instructions_ * static_cast<double>(elements_of(nest_)))};
  }

 private:
  // What warps take by where they lie: the code of a part, or on which side of a mask which form.
  struct Form {
    std::optional<WarpMask> mask;
    int64_t operations = 0;  // of a thread, in one part
    std::unique_ptr<Form> above, below, open;
  };

  int64_t operations(const thread::Block& body, double* instructions = nullptr) const {
    ElementWork work(k_, nest_);
    const int64_t sum = work(body) * (elements_of(nest_) / parts_);
    if (instructions) *instructions += work.instructions();
    return sum;
  }
  int64_t operations(const Form& form, int64_t warp, int64_t part) const {
    if (!form.mask) return form.operations;
    int64_t at = form.mask->rest.constant;
    for (const auto& [term, factor] : form.mask->rest.terms) {
      if (e_[term].op != ir::ExprOp::var) continue;
      const VarId var = e_[term].var();
      const auto digit = nest_.warp_digits.find(var);
      if (var == nest_.loops.front().var) at += factor * part;
      if (digit != nest_.warp_digits.end())
        at += factor * (warp * k_.in.target.warp / digit->second.stride % digit->second.extent);
    }
    const Form& taken = at >= form.mask->above   ? *form.above
                        : at <= form.mask->below ? *form.below
                                                 : *form.open;
    return operations(taken, warp, part) + (form.mask->by_part || part == 0 ? kBranchOperations : 0);
  }

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

  // The code of a body whose masks stay as they are, in the nest's loops from `loop` on. Adds what its
  // vectors are to the result.
  thread::Block leaf(thread::Block body, size_t loop, Attempt& result, Form& form) {
    form.operations = operations(body, &instructions_);
    if (width_ > 1) {
      Attempt own;
      inspect_vector(k_, nest_, body, own);
      result.legal = result.legal && own.legal && !own.lane_bounds;
      result.wide = result.wide || own.wide;
    }
    if (body.empty()) return body;
    return wrap(k_, nest_, loop, nest_.loops.size(), std::move(body), walk_.origin);
  }

  // Masks that are known for all of a warp's points are asked for first; of those that parts know, one is.
  std::optional<WarpMask> next_mask(const thread::Block& body, int whole) const {
    std::optional<WarpMask> next;
    for (WarpMask& mask : MaskFinder(k_, nest_).find(body)) {
      const bool stays = std::any_of(undecided_.begin(), undecided_.end(),
                                     [&](const auto& terms) { return terms == mask.rest.terms; });
      if (stays || (!mask.by_part && whole == kMaxWarpMasks)) continue;
      if (!next || (next->by_part && !mask.by_part)) next = std::move(mask);
    }
    return next;
  }

  thread::Block divide(thread::Block body, int whole, Attempt& result, Form& form) {
    form.mask = next_mask(body, whole);
    if (!form.mask) return leaf(std::move(body), 0, result, form);
    const WarpMask mask = *form.mask;
    const ExprId rest = arith::from_affine(k_.ctx, mask.rest);
    const ExprId above = k_.simplified(e_.le(e_.const_int(mask.above), rest)),
                 below = k_.simplified(e_.le(rest, e_.const_int(mask.below)));
    const auto inner = [&](thread::Block own, std::unique_ptr<Form>& to) {
      to = std::make_unique<Form>();
      return mask.by_part ? leaf(std::move(own), 1, result, *to)
                          : divide(std::move(own), whole + 1, result, *to);
    };
    const auto known = [&](ExprId condition, std::unique_ptr<Form>& to) {
      const auto mark = k_.ctx.mark();
      k_.ctx.assume(condition);
      thread::Block own = this->body();
      fold_mask(k_, own);
      own = inner(std::move(own), to);
      k_.ctx.rollback(mark);
      return own;
    };
    const thread::Block over = known(above, form.above);
    thread::Block others = known(below, form.below);
    if (mask.has_gap()) {
      if (mask.by_part) shorten_mask(k_, nest_, body);
      undecided_.push_back(mask.rest.terms);
      const thread::Block open = inner(std::move(body), form.open);
      undecided_.pop_back();
      others = {k_.out.add(thread::Branch{below, std::move(others), open}, walk_.origin)};
    }
    thread::Block all = {k_.out.add(thread::Branch{above, over, std::move(others)}, walk_.origin)};
    return mask.by_part ? wrap(k_, nest_, 0, 1, std::move(all), walk_.origin) : all;
  }

  LoweringContext& k_;
  ir::ExprPool& e_;
  const Walk& walk_;
  const EmitPoint& emit_;
  const int64_t parts_, width_;
  Nest nest_;
  Form form_;
  std::vector<decltype(arith::Affine::terms)> undecided_;  // masks of which the code being made knows nothing
  int64_t open_operations_ = 0;  // of a thread, in one part, where no warp knows a mask
  double instructions_ = 0;      // of an element, in all forms
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
