#include "arith/period.h"

#include <numeric>

#include "arith/prove.h"

namespace tilegen::arith {

using ir::ExprId;
using ir::ExprOp;

std::optional<int64_t> period_of(Context& ctx, ExprId e, ir::VarId var, int64_t most) {
  const ir::ExprPool& pool = ctx.pool();
  if (!e.valid() || !depends_on(pool, e, var)) return 1;
  const ir::ExprNode n = pool[e];
  if (n.op == ExprOp::var || n.op == ExprOp::load) return std::nullopt;
  int64_t period = 1;
  const auto join = [&](std::optional<int64_t> part) {
    if (part) period = std::lcm(period, *part);
    return part.has_value() && period <= most;
  };
  int64_t modulus = 0;
  const bool wraps_around = n.op == ExprOp::floormod && pool.is_const_int(n.b, &modulus) && modulus > 0;
  // A sum that may overflow has other remainders from there on.
  const auto sum = wraps_around ? exact_difference(ctx, n.a, ctx.pool().const_int(0)) : std::nullopt;
  if (sum) {
    for (const auto& [atom, coefficient] : sum->terms) {
      const ir::ExprNode a = pool[atom];
      const bool counts = a.op == ExprOp::var && a.var() == var;
      if (!join(counts ? modulus / std::gcd(modulus, coefficient) : period_of(ctx, atom, var, most)))
        return std::nullopt;
    }
    return period;
  }
  return join(period_of(ctx, n.a, var, most)) && join(period_of(ctx, n.b, var, most)) &&
                 join(period_of(ctx, n.c, var, most))
             ? std::optional(period)
             : std::nullopt;
}

}  // namespace tilegen::arith
