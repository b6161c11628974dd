#include "codegen/llvm/index_facts.h"

#include <algorithm>
#include <numeric>

#include "arith/simplify.h"

namespace tilegen::codegen {

using arith::Interval;
using ir::ExprId;
using ir::ExprOp;

IndexFacts::IndexFacts(const thread::ThreadProgram& program, GridLimits limits)
    : program_(program), pool_(program.exprs), context_(pool_) {
  for (size_t i = 0; i < program.vars.size(); ++i) {
    const ir::Var& v = program.vars[i];
    if (v.kind == ir::VarKind::dim)
      bind(ir::VarId(i), v.lower, v.upper, std::lcm(v.divisor, guarded_divisor(ir::VarId(i))));
  }
  for (const thread::Guard& g : program.guards) bind_extents(g);
  if (program.launched_var.valid()) bind(program.launched_var, 1, thread::kMaxResidentBlocks, 1);
  if (program.thread_var.valid()) bind(program.thread_var, 0, program.threads - 1, 1);
  for (size_t i = 0; i < program.block_vars.size(); ++i) {
    int64_t limit = program.launched_var.valid()         ? thread::kMaxPersistentPoints
                    : i + 1 == program.block_vars.size() ? limits.fastest
                                                         : limits.others;
    Interval extent = i < program.grid.size() ? range(program.grid[i]) : Interval::whole();
    bind(program.block_vars[i], 0, std::min(limit, std::max<int64_t>(extent.hi, 1)) - 1, 1);
  }
  assume_points();
  // A variable may serve several loops, and its range decides that of others: the second round sees all of
  // it.
  bind_loops(program.body);
  bind_loops(program.body);
}

// Products, of which ranges alone cannot tell that they do not wrap. The points a persistent program walks
// are those of its grid, which the launch has found small enough; the factors of a grid are not negative
// where a block runs, and none of their products is more than the grid.
void IndexFacts::assume_points() {
  auto assume_between = [&](int64_t least, ExprId e, int64_t most) {
    context_.assume(pool_.le(pool_.const_int(least), e));
    if (most != INT64_MAX) context_.assume(pool_.le(e, pool_.const_int(most)));
  };
  const bool persistent = program_.launched_var.valid();
  const std::vector<ExprId> points =
      program_.grid.size() == 1 ? factors(program_.grid[0]) : std::vector<ExprId>();
  if (persistent) assume_between(1, program_.grid[0], thread::kMaxPersistentPoints);
  for (ExprId factor : points) {
    const ir::ExprNode n = pool_[factor];
    assume_between(0, factor, INT64_MAX);
    if (n.op == ExprOp::max) assume_between(0, n.a, INT64_MAX);  // an extent that is counted as 0 below 0
  }
  auto is_var = [&](ExprId e, auto fits) {
    const ir::ExprNode& n = pool_[e];
    return n.op == ExprOp::var && fits(n.var());
  };
  auto is_loop = [&](ir::VarId v) { return program_.vars[v.value].kind == ir::VarKind::loop; };
  auto is_launched = [&](ir::VarId v) { return v == program_.launched_var; };
  for (size_t i = 0; i < program_.exprs.size(); ++i) {
    const ir::ExprNode n = pool_[ExprId(i)];
    if (n.op != ExprOp::mul || n.type != ir::DType::i64) continue;
    const bool walks = (is_var(n.a, is_loop) && is_var(n.b, is_launched)) ||
                       (is_var(n.b, is_loop) && is_var(n.a, is_launched));
    if (walks) assume_between(0, ExprId(i), thread::kMaxPersistentPoints - 1);
    const std::vector<ExprId> part = factors(ExprId(i));
    if (!walks && std::includes(points.begin(), points.end(), part.begin(), part.end()))
      assume_between(0, ExprId(i), INT64_MAX);
  }
  ranges_.clear();
}

// Of a product, ascending.
std::vector<ExprId> IndexFacts::factors(ExprId product) const {
  std::vector<ExprId> list, open = {product};
  while (!open.empty()) {
    const ir::ExprNode& n = pool_[open.back()];
    const ExprId e = open.back();
    open.pop_back();
    if (n.op == ExprOp::mul && n.type == ir::DType::i64)
      open.insert(open.end(), {n.a, n.b});
    else
      list.push_back(e);
  }
  std::sort(list.begin(), list.end());
  return list;
}

// What the launch has looked at before it chose this form of the kernel.
int64_t IndexFacts::guarded_divisor(ir::VarId v) const {
  int64_t divisor = 1;
  for (const thread::Guard& g : program_.guards) {
    const thread::Param& p = program_.params[static_cast<size_t>(g.param)];
    if (p.kind == thread::Param::Kind::dim && p.var == v) divisor = std::lcm(divisor, g.divisor);
  }
  return divisor;
}

// No extent of a tensor is more than all of its elements: the factors of `reach` are 1 at least.
void IndexFacts::bind_extents(const thread::Guard& g) {
  if (!g.reach.valid()) return;
  const int64_t bytes = ir::dtype_bytes(program_.params[static_cast<size_t>(g.param)].type);
  for (ExprId factor : factors(g.reach)) {
    ir::ExprNode n = pool_[factor];
    int64_t more = 0;
    if (n.op == ExprOp::add && pool_.is_const_int(n.b, &more)) n = pool_[n.a];
    if (n.op == ExprOp::max) n = pool_[pool_.is_const(n.b) ? n.a : n.b];
    if (n.op != ExprOp::var || more < 0) continue;
    const auto facts = context_.facts_of(n.var());
    const int64_t most = g.most_bytes / bytes - more;
    if (facts && most < facts->range.hi) bind(n.var(), facts->range.lo, most, facts->divisor);
  }
}

void IndexFacts::bind(ir::VarId v, int64_t lo, int64_t hi, int64_t divisor) {
  context_.bind(v, lo, hi, std::max<int64_t>(divisor, 1));
  ranges_.clear();
}

void IndexFacts::bind_loops(const thread::Block& body) {
  for (thread::StmtId id : body) {
    const thread::StmtNode& node = program_.stmts[id.value].node;
    if (auto* loop = std::get_if<thread::Loop>(&node)) {
      int64_t extent = range(loop->extent).hi;
      int64_t last = std::min(std::max<int64_t>(extent, 1) - 1, thread::kMaxIterations);
      auto known = context_.facts_of(loop->var);
      bind(loop->var, 0, known ? std::max(known->range.hi, last) : last, 1);
    }
    for (const thread::Block* inner : thread::blocks_inside(node)) bind_loops(*inner);
  }
}

Interval IndexFacts::range(ExprId e) {
  if (auto it = ranges_.find(e); it != ranges_.end()) return it->second;
  Interval r = arith::range_of(context_, e);
  ranges_.emplace(e, r);
  return r;
}

Interval IndexFacts::range_of_var(ir::VarId v) const {
  auto facts = context_.facts_of(v);
  return facts ? facts->range : Interval::whole();
}

bool IndexFacts::narrow(ExprId e) { return range(e).within({INT32_MIN, INT32_MAX}); }

const arith::Affine& IndexFacts::affine(ExprId e) {
  auto it = affines_.find(e);
  if (it != affines_.end()) return it->second;
  auto a = arith::to_affine(context_, e);
  if (!a) a = arith::Affine{{{e, 1}}, 0};
  return affines_.emplace(e, std::move(*a)).first->second;
}

ExprId IndexFacts::simplified(ExprId e) {
  if (auto it = simplified_.find(e); it != simplified_.end()) return it->second;
  ExprId s = arith::simplify(context_, e);
  simplified_.emplace(e, s);
  return s;
}

bool IndexFacts::depends_on(ExprId e, ir::VarId v) {
  if (v != asked_) dependent_.clear(), asked_ = v;
  if (auto it = dependent_.find(e); it != dependent_.end()) return it->second;
  bool yes = arith::depends_on(pool_, e, v);
  dependent_.emplace(e, yes);
  return yes;
}

int64_t IndexFacts::divisor(const arith::Affine& sum) {
  int64_t divisor = sum.constant;
  for (const auto& [atom, coefficient] : sum.terms) {
    int64_t part = 0;
    if (__builtin_mul_overflow(coefficient, arith::divisor_of(context_, atom), &part)) part = 1;
    divisor = std::gcd(divisor, part);
  }
  return divisor;
}

std::optional<int64_t> IndexFacts::value_where(ExprId e, const KnownVar& known) const {
  const std::function<std::optional<ir::ScalarValue>(ExprId)> value =
      [&](ExprId x) -> std::optional<ir::ScalarValue> {
    const ir::ExprNode& n = pool_[x];
    if (n.op == ExprOp::const_int) return ir::ScalarValue{n.type, n.imm, 0};
    if (n.op == ExprOp::var) {
      const auto v = known(n.var());
      return v ? std::optional(ir::ScalarValue{n.type, *v, 0}) : std::nullopt;
    }
    const int arity = ir::expr_arity(n.op);
    if (arity == 0 || ir::is_float(n.type)) return std::nullopt;
    ir::ScalarValue operands[3];
    for (int i = 0; i < arity; ++i) {
      const auto operand = value(i == 0 ? n.a : i == 1 ? n.b : n.c);
      if (!operand) return std::nullopt;
      operands[i] = *operand;
    }
    return ir::eval_operation(n.op, n.type, operands[0], operands[1], operands[2]);
  };
  const auto v = value(e);
  return v ? std::optional(v->i) : std::nullopt;
}

bool IndexFacts::is_dim(ExprId e) const {
  const ir::ExprNode& n = pool_[e];
  return n.op == ExprOp::var && program_.vars[n.var().value].kind == ir::VarKind::dim;
}

}  // namespace tilegen::codegen
