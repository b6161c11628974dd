#include "runtime/dim_solver.h"

#include <set>

#include "support/checked.h"

namespace tilegen::runtime {
namespace {

// Every expression that `root` consists of, operands before users.
std::set<ir::ExprId> parts_of(const ir::ExprPool& pool, ir::ExprId root) {
  std::set<ir::ExprId> parts;
  std::vector<ir::ExprId> todo{root};
  while (!todo.empty()) {
    const ir::ExprId id = todo.back();
    todo.pop_back();
    if (!id || !parts.insert(id).second) continue;
    const ir::ExprNode& n = pool[id];
    todo.insert(todo.end(), {n.a, n.b, n.c});
  }
  return parts;
}

}  // namespace

bool may_leave_out(const ir::Program& program, const ir::Buffer& tensor, ir::VarId dim) {
  if (!tensor.optional) return false;
  for (ir::ExprId extent : tensor.shape)
    for (ir::ExprId part : parts_of(program.exprs, extent))
      if (program.exprs[part].op == ir::ExprOp::var && program.exprs[part].var() == dim) return true;
  return false;
}

DimSolver::DimSolver(const ir::Program& program, std::span<const uint64_t> slots) : DimSolver(program) {
  for (size_t i = 0; i < program.params.size(); ++i) {
    if (program.params[i].kind == ir::Param::Kind::tensor) continue;
    const ir::Var& v = program.var(program.params[i].var);
    if (!ir::is_float(v.type))
      set(program.params[i].var, ir::wrap_to(v.type, static_cast<int64_t>(slots[i])), v.name);
  }
}

void DimSolver::set(ir::VarId v, int64_t value, std::string source) {
  known_[v.value] = value;
  sources_[v.value] = std::move(source);
}

DimSolver::Affine DimSolver::combine(const ir::ExprNode& n, const Affine& a, const Affine& b,
                                     const Affine& c) const {
  Affine r;
  r.affine = false;
  const bool constants = a.is_constant() && (ir::expr_arity(n.op) < 2 || b.is_constant()) &&
                         (ir::expr_arity(n.op) < 3 || c.is_constant());
  if (constants && n.op == ir::ExprOp::select) return a.constant != 0 ? b : c;
  const bool linear = n.op == ir::ExprOp::add || n.op == ir::ExprOp::sub || n.op == ir::ExprOp::mul;
  if (constants && !linear) {
    if (n.type != ir::DType::i64 && n.type != ir::DType::boolean) return r;
    const ir::ScalarValue x{ir::DType::i64, a.constant, 0}, y{ir::DType::i64, b.constant, 0};
    r.affine = true;
    r.constant = n.op == ir::ExprOp::cast    ? ir::eval_cast(n.type, x).i
                 : ir::expr_arity(n.op) == 1 ? ir::eval_unary(n.op, n.type, x).i
                                             : ir::eval_binary(n.op, n.type, x, y).i;
    return r;
  }
  if (!linear || !a.affine || !b.affine) return r;
  if (n.op == ir::ExprOp::mul) {
    if (!a.is_constant() && !b.is_constant()) return r;
    const Affine& scaled = a.is_constant() ? b : a;
    const int64_t factor = a.is_constant() ? a.constant : b.constant;
    const auto constant = checked_mul(scaled.constant, factor);
    if (!constant) return r;
    r.constant = *constant;
    for (const auto& [v, k] : scaled.terms) {
      const auto product = checked_mul(k, factor);
      if (!product) return r;
      if (*product != 0) r.terms.emplace_back(v, *product);
    }
    r.affine = true;
    return r;
  }
  const bool minus = n.op == ir::ExprOp::sub;
  const auto constant = minus ? checked_sub(a.constant, b.constant) : checked_add(a.constant, b.constant);
  if (!constant) return r;
  r.constant = *constant;
  r.terms = a.terms;
  for (const auto& [v, k] : b.terms) {
    size_t at = 0;
    while (at < r.terms.size() && r.terms[at].first != v) ++at;
    if (at == r.terms.size()) r.terms.emplace_back(v, 0);
    const auto sum = minus ? checked_sub(r.terms[at].second, k) : checked_add(r.terms[at].second, k);
    if (!sum) return r;
    r.terms[at].second = *sum;
  }
  std::erase_if(r.terms, [](const auto& term) { return term.second == 0; });
  r.affine = true;
  return r;
}

DimSolver::Affine DimSolver::affine_form(ir::ExprId root) const {
  std::unordered_map<ir::ExprId, Affine> forms;
  static const Affine kNothing;
  auto form = [&](ir::ExprId id) -> const Affine& { return id ? forms.at(id) : kNothing; };
  for (ir::ExprId id : parts_of(program_.exprs, root)) {
    const ir::ExprNode& n = program_.exprs[id];
    Affine f;
    if (n.op == ir::ExprOp::const_int) {
      f.constant = n.imm;
    } else if (n.op == ir::ExprOp::var && is_known(n.var())) {
      f.constant = value(n.var());
    } else if (n.op == ir::ExprOp::var && program_.var(n.var()).kind == ir::VarKind::dim) {
      f.terms.emplace_back(n.var(), 1);
    } else if (ir::expr_arity(n.op) == 0) {
      f.affine = false;
    } else {
      f = combine(n, form(n.a), form(n.b), form(n.c));
    }
    forms.emplace(id, std::move(f));
  }
  return forms.at(root);
}

std::optional<int64_t> DimSolver::evaluate(ir::ExprId root) const {
  int64_t literal = 0;
  if (program_.exprs.is_const_int(root, &literal)) return literal;
  const Affine f = affine_form(root);
  return f.is_constant() ? std::optional(f.constant) : std::nullopt;
}

std::string DimSolver::explain(ir::ExprId root) const {
  std::string text;
  for (ir::ExprId id : parts_of(program_.exprs, root)) {
    const ir::ExprNode& n = program_.exprs[id];
    if (n.op != ir::ExprOp::var || !is_known(n.var())) continue;
    text += (text.empty() ? "" : ", ") + program_.var(n.var()).name + " = " + std::to_string(value(n.var())) +
            " from " + source(n.var());
  }
  return text;
}

// x of `x // d = actual`, where facts of dims say that d divides it: bytes that hold d elements each.
std::optional<DimSolver::Equation> DimSolver::without_quotient(const Equation& e) const {
  const ir::ExprNode& n = program_.exprs[e.expr];
  int64_t d = 0;
  if (n.op != ir::ExprOp::floordiv || !program_.exprs.is_const_int(n.b, &d) || d < 1) return std::nullopt;
  const Affine f = affine_form(n.a);
  bool whole = f.affine && f.constant % d == 0;
  for (const auto& [v, k] : f.terms) whole = whole && (k % d == 0 || program_.var(v).divisor % d == 0);
  const auto actual = checked_mul(e.actual, d);
  return whole && actual ? std::optional<Equation>({n.a, *actual, e.param, e.what}) : std::nullopt;
}

DimSolver::Outcome DimSolver::step(const Equation& e) {
  const Affine f = affine_form(e.expr);
  if (f.is_constant()) return f.constant == e.actual ? Outcome::holds : Outcome::fails;
  if (const auto whole = without_quotient(e)) return step(*whole);
  if (!f.affine || f.terms.size() != 1) return Outcome::waits;
  const auto rest = checked_sub(e.actual, f.constant);
  const int64_t k = f.terms[0].second;
  if (!rest || floor_mod(*rest, k) != 0 || floor_div(*rest, k) < 0) return Outcome::fails;
  set(f.terms[0].first, floor_div(*rest, k), e.what);
  return Outcome::solved;
}

std::optional<DimSolver::Equation> DimSolver::solve(const std::vector<Equation>& equations) {
  std::vector<bool> done(equations.size());
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t i = 0; i < equations.size(); ++i) {
      if (done[i]) continue;
      const Outcome outcome = step(equations[i]);
      if (outcome == Outcome::fails) return equations[i];
      done[i] = outcome != Outcome::waits;
      progress |= outcome == Outcome::solved;
    }
  }
  return std::nullopt;
}

}  // namespace tilegen::runtime
