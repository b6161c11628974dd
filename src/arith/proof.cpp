// Proofs of "sum >= 0" over the mathematical integers: by range, by assumed facts, by replacing an atom with
// something that bounds it.
#include <algorithm>

#include "arith/analyzer.h"
#include "support/checked.h"

namespace tilegen::arith {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

// All terms are multiples of g, so the constant may be rounded down to one.
Sum Analyzer::tightened(const Sum& s) {
  Sum r = s;
  int64_t g = 0;
  for (const Term& t : s.terms) {
    std::optional<int64_t> d = checked_mul(gcd_of(t.coeff, 0), atom_divisor(t.atom));
    g = gcd_of(g, d ? *d : t.coeff);
  }
  if (g > 1 && s.constant > INT64_MIN / 2) r.constant = floor_div(s.constant, g) * g;
  return r;
}

bool Analyzer::non_negative(const Sum& s, int depth) {
  if (!step()) return false;
  Sum t = tightened(s);
  Interval r = sum_range(t);
  if (r.lo >= 0) return true;
  if (r.hi < 0 || depth <= 0) return false;
  return proved_by_facts(t, depth) || proved_by_atoms(t, depth);
}

// s >= 0 follows from a*s - b*f >= 0 for a fact f >= 0 and a, b > 0; a and b are chosen to cancel one term.
bool Analyzer::proved_by_facts(const Sum& s, int depth) {
  for (const Sum& f : ctx_.non_negative_sums()) {
    std::pair<int64_t, int64_t> tried{0, 0};
    for (const Term& t : f.terms) {
      int64_t k = s.coeff_of(t.atom);
      if (k == 0 || (k < 0) != (t.coeff < 0)) continue;
      int64_t g = gcd_of(k, t.coeff);
      std::pair<int64_t, int64_t> ab{gcd_of(t.coeff, 0) / g, gcd_of(k, 0) / g};
      if (ab == tried) continue;
      tried = ab;
      std::optional<Sum> d = scaled(s, ab.first);
      std::optional<int64_t> minus = checked_mul(ab.second, -1);
      if (d && minus) d = add_scaled(*d, f, *minus);
      if (d && non_negative(joined(std::move(*d)), depth - 1)) return true;
      if (exhausted()) return false;
    }
  }
  return false;
}

bool Analyzer::proved_by_atoms(const Sum& s, int depth) {
  auto with = [&](const Term& t, ExprId bound) {
    std::optional<Sum> d = add_scaled(s, Sum::of_atom(t.atom), -t.coeff);
    if (d) d = add_scaled(*d, exact_sum(bound), t.coeff);
    return d && non_negative(joined(std::move(*d)), depth - 1);
  };
  for (const Term& t : Terms(s.terms)) {
    const ExprNode n = pool_[t.atom];
    if (t.coeff == INT64_MIN || exhausted()) continue;
    // max(a, b) is at least either side, min(a, b) at most.
    bool bounded = (n.op == ExprOp::max && t.coeff > 0) || (n.op == ExprOp::min && t.coeff < 0);
    if (bounded && (with(t, n.a) || with(t, n.b))) return true;
    bool either = (n.op == ExprOp::max && t.coeff < 0) || (n.op == ExprOp::min && t.coeff > 0);
    if (either && with(t, n.a) && with(t, n.b)) return true;
    if (n.op == ExprOp::select && with(t, n.b) && with(t, n.c)) return true;
    int64_t c = 0;
    if (n.op == ExprOp::floordiv && pool_.is_const_int(n.b, &c) && c > 0) {
      // c * (x // c) lies in [x - c + 1, x]
      std::optional<Sum> d = scaled(s, c);
      Sum x = exact_sum(n.a);
      std::optional<int64_t> kc = checked_mul(t.coeff, -c), slack = checked_mul(t.coeff, c - 1);
      if (!d || !kc || !slack) continue;
      d = add_scaled(*d, Sum::of_atom(t.atom), *kc);
      if (d) d = add_scaled(*d, x, t.coeff);
      if (d && t.coeff > 0) d = add_scaled(*d, Sum::of_constant(*slack), -1);
      if (d && non_negative(joined(std::move(*d)), depth - 1)) return true;
    }
  }
  return false;
}

std::optional<Sum> Analyzer::reduced_guard(Sum s) {
  for (int round = 0; round < 8; round++) {
    s = tightened(s);
    if (!drop_low_part(s, 0, nullptr)) break;
  }
  int64_t g = coefficient_gcd(s);
  if (g == 0) return std::nullopt;
  if (g > 1) s = divided(s, g);
  return s;
}

}  // namespace tilegen::arith
