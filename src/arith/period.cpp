#include "arith/period.h"

#include <numeric>
#include <unordered_map>

#include "arith/prove.h"

namespace tilegen::arith {

using ir::ExprId;
using ir::ExprOp;

namespace {

class Periods {
 public:
  Periods(Context& ctx, ir::VarId var, int64_t most) : ctx_(ctx), pool_(ctx.pool()), var_(var), most_(most) {}

  // An expression may stand in others many times: each is asked once.
  std::optional<int64_t> of(ExprId e) {
    if (!e.valid()) return 1;
    if (const auto known = known_.find(e); known != known_.end()) return known->second;
    const auto found = depends_on(pool_, e, var_) ? find(e) : std::optional<int64_t>(1);
    known_.emplace(e, found);
    return found;
  }

 private:
  std::optional<int64_t> find(ExprId e) {
    const ir::ExprNode n = pool_[e];
    if (n.op == ExprOp::var || n.op == ExprOp::load) return std::nullopt;
    int64_t modulus = 0;
    const bool wraps_around = n.op == ExprOp::floormod && pool_.is_const_int(n.b, &modulus) && modulus > 0;
    // A sum that may overflow has other remainders from there on.
    const auto sum = wraps_around ? exact_difference(ctx_, n.a, ctx_.pool().const_int(0)) : std::nullopt;
    std::optional<int64_t> period = 1;
    if (!sum) {
      for (ExprId operand : {n.a, n.b, n.c}) period = joined(period, of(operand));
      return period;
    }
    for (const auto& [atom, coefficient] : sum->terms) {
      const ir::ExprNode a = pool_[atom];
      const bool counts = a.op == ExprOp::var && a.var() == var_;
      period = joined(period, counts ? modulus / std::gcd(modulus, coefficient % modulus) : of(atom));
    }
    return period;
  }

  std::optional<int64_t> joined(std::optional<int64_t> a, std::optional<int64_t> b) const {
    if (!a || !b || *a > most_ || *b > most_) return std::nullopt;
    const int64_t both = *a / std::gcd(*a, *b);
    return both <= most_ / *b ? std::optional(both * *b) : std::nullopt;
  }

  Context& ctx_;
  const ir::ExprPool& pool_;
  const ir::VarId var_;
  const int64_t most_;
  std::unordered_map<ExprId, std::optional<int64_t>> known_;
};

}  // namespace

std::optional<int64_t> period_of(Context& ctx, ExprId e, ir::VarId var, int64_t most) {
  return Periods(ctx, var, most).of(e);
}

}  // namespace tilegen::arith
