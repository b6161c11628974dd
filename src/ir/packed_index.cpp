#include "ir/packed_index.h"

#include <numeric>
#include <utility>

#include "support/checked.h"

namespace tilegen::ir {

bool PackedIndex::is(ExprId e, int64_t v) const {
  int64_t value = 0;
  return e_.is_const_int(e, &value) && value == v;
}

bool PackedIndex::divides(int64_t d, ExprId e, int depth) const {
  const ExprNode& n = e_[e];
  int64_t value = 0;
  if (d == 1) return true;
  if (e_.is_const_int(e, &value)) return value % d == 0;
  if (depth == 0 || n.type != DType::i64) return false;
  if (n.op == ExprOp::var) return p_.var(n.var()).kind == VarKind::dim && p_.var(n.var()).divisor % d == 0;
  if (n.op == ExprOp::add || n.op == ExprOp::sub)
    return divides(d, n.a, depth - 1) && divides(d, n.b, depth - 1);
  if (n.op != ExprOp::mul) return false;
  for (const auto& [factor, other] : {std::pair(n.a, n.b), {n.b, n.a}})
    if (e_.is_const_int(factor, &value) && value != 0 && divides(d / std::gcd(d, value), other, depth - 1))
      return true;
  return divides(d, n.a, depth - 1) || divides(d, n.b, depth - 1);
}

ExprId PackedIndex::quotient(ExprId e, int64_t d) {
  const ExprNode n = e_[e];
  int64_t value = 0;
  if (d == 1) return e;
  if (e_.is_const_int(e, &value)) return e_.const_int(value / d);
  if (n.op == ExprOp::add) return e_.add(quotient(n.a, d), quotient(n.b, d));
  if (n.op == ExprOp::sub) return e_.sub(quotient(n.a, d), quotient(n.b, d));
  if (n.op == ExprOp::mul)
    for (const auto& [factor, other] : {std::pair(n.b, n.a), {n.a, n.b}}) {
      if (e_.is_const_int(factor, &value) && value != 0) {
        const int64_t common = std::gcd(d, value);
        if (divides(d / common, other)) return e_.mul(quotient(other, d / common), value / common);
      } else if (divides(d, factor)) {
        return e_.mul(other, quotient(factor, d));
      }
    }
  return e_.floordiv(e, e_.const_int(d));
}

PackedIndex::Split PackedIndex::split(ExprId e, int64_t d, int depth) {
  const ExprNode n = e_[e];
  const ExprId zero = e_.const_int(0);
  int64_t value = 0;
  if (e_.is_const_int(e, &value))
    return {e_.const_int(floor_div(value, d)), e_.const_int(floor_mod(value, d))};
  if (divides(d, e)) return {quotient(e, d), zero};
  if (depth == 0 || (n.op != ExprOp::add && n.op != ExprOp::sub)) return {zero, e};
  const Split a = split(n.a, d, depth - 1), b = split(n.b, d, depth - 1);
  Split sum;
  sum.times = n.op == ExprOp::add ? e_.add(a.times, b.times) : e_.sub(a.times, b.times);
  sum.rest = n.op == ExprOp::add ? e_.add(a.rest, b.rest) : e_.sub(a.rest, b.rest);
  if (e_.is_const_int(sum.rest, &value)) {
    sum.times = e_.add(sum.times, floor_div(value, d));
    sum.rest = e_.const_int(floor_mod(value, d));
  }
  return sum;
}

}  // namespace tilegen::ir
