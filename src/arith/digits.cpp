// Joining digits of one value inside a sum, the reverse of quotient() and remainder().
//
//   (x // c)*c + x % c                     -> x
//   (x // (b*m))*m + (x // b) % m          -> x // b
//   ((x // (b*m)) % n)*m + (x // b) % m    -> (x // b) % (m*n)
//   x - (x // c)*c                         -> x % c
//   (x // c)*c                             -> x               where c divides x
// Each step removes an atom, so the loop ends.
#include "arith/analyzer.h"
#include "support/checked.h"

namespace tilegen::arith {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

struct Analyzer::DigitView {
  ExprId value;
  int64_t base = 1;
  int64_t modulus = 0;  // 0: the quotient itself
};

std::optional<Analyzer::DigitView> Analyzer::digit_view(ExprId atom) const {
  const ExprNode& n = pool_[atom];
  int64_t c = 0;
  if (n.op == ExprOp::floordiv && pool_.is_const_int(n.b, &c) && c > 0) return DigitView{n.a, c, 0};
  if (n.op != ExprOp::floormod || !pool_.is_const_int(n.b, &c) || c <= 0) return std::nullopt;
  const ExprNode& inner = pool_[n.a];
  int64_t b = 0;
  if (inner.op == ExprOp::floordiv && pool_.is_const_int(inner.b, &b) && b > 0)
    return DigitView{inner.a, b, c};
  return DigitView{n.a, 1, c};
}

Sum Analyzer::joined(Sum s) {
  for (int round = 0; round < 32 && step(); round++) {
    if (!join_exact_quotient(s) && !join_digits(s) && !join_value_and_quotient(s)) break;
  }
  return s;
}

namespace {

// s - term + k * with, in place; false (s unchanged) on overflow.
bool replace_term(Sum& s, const Term& term, const Sum& with, int64_t k) {
  std::optional<Sum> r = add_scaled(s, Sum::of_atom(term.atom, term.coeff), -1);
  if (r) r = add_scaled(*r, with, k);
  if (!r) return false;
  s = std::move(*r);
  return true;
}

}  // namespace

bool Analyzer::join_exact_quotient(Sum& s) {
  for (const Term& t : Terms(s.terms)) {
    auto v = digit_view(t.atom);
    if (!v || v->modulus != 0 || t.coeff % v->base != 0) continue;
    Sum x = linear(v->value);
    int64_t d = divisor(x);
    if (is_exact(x) && d % v->base == 0 && replace_term(s, t, x, t.coeff / v->base)) return true;
  }
  return false;
}

bool Analyzer::join_digits(Sum& s) {
  std::vector<std::pair<Term, DigitView>> digits;
  for (const Term& t : s.terms)
    if (auto v = digit_view(t.atom)) digits.push_back({t, *v});
  for (const auto& [low, l] : digits) {
    if (l.modulus == 0) continue;
    std::optional<int64_t> base = checked_mul(l.base, l.modulus), coeff = checked_mul(low.coeff, l.modulus);
    if (!base || !coeff) continue;
    for (const auto& [high, h] : digits) {
      if (h.value != l.value || h.base != *base || high.coeff != *coeff) continue;
      std::optional<int64_t> modulus = h.modulus == 0 ? 0 : checked_mul(l.modulus, h.modulus);
      if (!modulus) continue;
      ExprId part = l.base == 1 ? l.value : pool_.floordiv(l.value, pool_.const_int(l.base));
      if (*modulus != 0) part = pool_.floormod(part, pool_.const_int(*modulus));
      Sum rest = s;
      if (replace_term(rest, high, Sum{}, 1) && replace_term(rest, low, linear(part), low.coeff)) {
        s = std::move(rest);
        return true;
      }
    }
  }
  return false;
}

bool Analyzer::join_value_and_quotient(Sum& s) {
  if (s.terms.size() < 2) return false;
  for (const Term& t : Terms(s.terms)) {
    auto v = digit_view(t.atom);
    if (!v || v->modulus != 0 || t.coeff % v->base != 0 || t.coeff == INT64_MIN) continue;
    int64_t k = -(t.coeff / v->base);  // s holds -k*base*(x // base); look for k*x beside it
    Sum x = linear(v->value);
    bool all = !x.is_constant();
    for (const Term& u : x.terms) {
      std::optional<int64_t> want = checked_mul(u.coeff, k);
      all = all && want && s.coeff_of(u.atom) == *want;
    }
    if (!all || !is_exact(x)) continue;
    Sum rest = s;
    if (!replace_term(rest, t, x, -k)) continue;
    std::optional<Sum> r = add_scaled(rest, remainder(x, v->base), k);
    if (r && r->terms.size() < s.terms.size()) {
      s = std::move(*r);
      return true;
    }
  }
  return false;
}

}  // namespace tilegen::arith
