#include <map>

#include "spelling_rewrites.h"

namespace tilegen::differential {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using ir::Program;
using ir::StmtId;

namespace {

// Every expression of a parallel loop, made anew; binary(op, a, b) makes operations of two operands.
bool remake(Program& p, const std::function<ExprId(ExprOp, ExprId, ExprId)>& binary) {
  std::map<ExprId, ExprId> memo;
  bool any = false;
  const std::function<ExprId(ExprId)> visit = [&](ExprId id) -> ExprId {
    if (const auto it = memo.find(id); it != memo.end()) return it->second;
    const ExprNode n = p.exprs[id];
    ExprId made = id;
    if (n.op == ExprOp::load) {
      std::vector<ExprId> indices(p.exprs.indices(id).begin(), p.exprs.indices(id).end());
      for (ExprId& index : indices) index = visit(index);
      made = p.exprs.load(n.object, n.type, indices);
    } else if (ir::expr_arity(n.op) == 2) {
      const ExprId a = visit(n.a), b = visit(n.b);
      made = binary(n.op, a, b);
    } else if (ir::expr_arity(n.op) > 0) {
      const ExprId a = visit(n.a), b = n.b.valid() ? visit(n.b) : n.b, c = n.c.valid() ? visit(n.c) : n.c;
      made = p.exprs.operation(n, a, b, c);
    }
    any = any || made != id;
    return memo[id] = made;
  };
  for (size_t s = 0; s < p.stmts.size(); ++s) {
    const ir::Block body = parallel_loop(p, StmtId(s)) ? parallel_loop(p, StmtId(s))->body : ir::Block();
    replace_inside(p, body, visit);
  }
  return any;
}

}  // namespace

// a + b -> b + a. Of two numbers that are not, max and min may give a zero of either sign: these stay.
bool commute(Program& p) {
  return remake(p, [&](ExprOp op, ExprId a, ExprId b) {
    const bool either = op == ExprOp::add || op == ExprOp::mul || op == ExprOp::eq || op == ExprOp::ne ||
                        op == ExprOp::logical_and || op == ExprOp::logical_or;
    return either ? p.exprs.binary(op, b, a) : p.exprs.binary(op, a, b);
  });
}

// max(a, b) -> select(a < b, b, a), where the numbers allow it
bool choose_extremes(Program& p) {
  return remake(p, [&](ExprOp op, ExprId a, ExprId b) {
    if (op == ExprOp::max) return p.exprs.select(p.exprs.binary(ExprOp::lt, a, b), b, a);
    if (op == ExprOp::min) return p.exprs.select(p.exprs.binary(ExprOp::lt, b, a), b, a);
    return p.exprs.binary(op, a, b);
  });
}

}  // namespace tilegen::differential
