#include "check/launch_facts.h"

#include <algorithm>

#include "arith/context.h"
#include "arith/prove.h"
#include "check/expr_walk.h"

namespace tilegen::check {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

namespace {

bool is_fixed(const ir::Program& p, ExprId e) {
  bool fixed = true;
  ExprWalk walk(p);
  walk.start();
  walk.visit(e, [&](ExprId, const ExprNode& n) {
    if (n.op == ExprOp::load || n.op == ExprOp::native_call) fixed = false;
    if (n.op != ExprOp::var) return;
    const ir::VarKind kind = p.var(n.var()).kind;
    fixed = fixed && kind != ir::VarKind::loop && kind != ir::VarKind::thread;
  });
  return fixed;
}

// a < b and b <= a, of integers.
bool are_opposite(const ir::Program& p, ExprId a, ExprId b) {
  const ExprNode &x = p.exprs[a], &y = p.exprs[b];
  const bool compare =
      (x.op == ExprOp::lt && y.op == ExprOp::le) || (x.op == ExprOp::le && y.op == ExprOp::lt);
  return compare && !ir::is_float(p.exprs.type(x.a)) && x.a == y.b && x.b == y.a;
}

void add(const ir::Program& p, ExprId e, std::vector<FixedCondition>& to) {
  for (FixedCondition& known : to) {
    if (known.contains(e)) return;
    const auto other =
        std::find_if(known.begin(), known.end(), [&](const auto& c) { return are_opposite(p, c.first, e); });
    if (other == known.end()) continue;
    known.emplace(e, !other->second);
    return;
  }
  to.push_back({{e, true}});
}

}  // namespace

void add_fixed_conditions(const ir::Program& p, ExprId condition, std::vector<FixedCondition>& to) {
  std::vector<ExprId> open = {condition};
  while (!open.empty()) {
    const ExprId e = open.back();
    open.pop_back();
    const ExprNode n = p.exprs[e];
    int64_t known = 0;
    if (p.exprs.is_const_int(e, &known)) continue;
    if (n.op == ExprOp::logical_not)
      open.push_back(n.a);
    else if (n.op == ExprOp::logical_and || n.op == ExprOp::logical_or)
      open.insert(open.end(), {n.a, n.b});
    else if (is_fixed(p, e))
      add(p, e, to);
  }
}

int64_t greatest_value(const ir::Program& p, ExprId e) {
  ir::ExprPool pool = p.exprs;
  arith::Context facts(pool);
  for (size_t v = 0; v < p.vars.size(); ++v)
    if (const ir::Var& var = p.vars[v]; var.kind == ir::VarKind::dim)
      facts.bind(ir::VarId(v), var.lower, var.upper, var.divisor);
  return std::max<int64_t>(arith::range_of(facts, e).hi, -1);
}

}  // namespace tilegen::check
