#include "schedule/trend.h"

#include "arith/prove.h"

namespace tilegen::schedule {

namespace {

Trend reversed(Trend t) {
  return t == Trend::rising ? Trend::falling : t == Trend::falling ? Trend::rising : t;
}
Trend together(Trend a, Trend b) {
  if (a == Trend::level || a == b) return b;
  return b == Trend::level ? a : Trend::unknown;
}

}  // namespace

Trend trend(const ir::ExprPool& e, ir::ExprId id, ir::VarId var) {
  if (!arith::depends_on(e, id, var)) return Trend::level;
  const ir::ExprNode& n = e[id];
  int64_t number = 0;
  switch (n.op) {
    case ir::ExprOp::var:
      return Trend::rising;
    case ir::ExprOp::add:
    case ir::ExprOp::min:
    case ir::ExprOp::max:
      return together(trend(e, n.a, var), trend(e, n.b, var));
    case ir::ExprOp::sub:
      return together(trend(e, n.a, var), reversed(trend(e, n.b, var)));
    case ir::ExprOp::mul:
      if (e.is_const_int(n.a, &number))
        return number >= 0 ? trend(e, n.b, var) : reversed(trend(e, n.b, var));
      if (e.is_const_int(n.b, &number))
        return number >= 0 ? trend(e, n.a, var) : reversed(trend(e, n.a, var));
      return Trend::unknown;
    case ir::ExprOp::floordiv:
      return e.is_const_int(n.b, &number) && number > 0 ? trend(e, n.a, var) : Trend::unknown;
    default:
      return Trend::unknown;
  }
}

}  // namespace tilegen::schedule
