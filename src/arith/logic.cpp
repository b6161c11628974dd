// Conditions: comparisons of i64 sums decided or reduced, junctions without what the others imply.
#include <algorithm>

#include "arith/analyzer.h"
#include "support/checked.h"

namespace tilegen::arith {

using ir::DType;
using ir::ExprClass;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

namespace {
constexpr size_t kMaxJunction = 12;  // members compared pairwise
}

ExprId Analyzer::simplify_bool(ExprId e) {
  const ExprNode n = pool_[e];
  ExprId r = e;
  if (n.op == ExprOp::logical_not) {
    r = negated(simplify(n.a));
  } else if (n.op == ExprOp::logical_and || n.op == ExprOp::logical_or) {
    r = simplify_junction(n.op, e);
  } else if (ir::expr_class(n.op) == ExprClass::compare) {
    r = simplify_compare(n.op, n.a, n.b);
  } else if (n.op == ExprOp::select) {
    ExprId a = simplify(n.a), b = simplify(n.b), c = simplify(n.c);
    r = pool_.select(a, b, c);
  } else if (n.op == ExprOp::cast || ir::expr_class(n.op) == ExprClass::test) {
    r = pool_.operation(n, simplify(n.a), {}, {});
  } else if (n.op == ExprOp::load) {
    r = simplify_load(e);
  }
  for (ExprId known : {e, r})
    if (const auto truth = ctx_.assumed_truth(known)) return pool_.const_int(*truth, DType::boolean);
  return r;
}

ExprId Analyzer::negated(ExprId c) {
  const ExprNode n = pool_[c];
  if (n.op == ExprOp::logical_not) return n.a;
  if (n.op == ExprOp::eq) return pool_.binary(ExprOp::ne, n.a, n.b);
  if (n.op == ExprOp::ne) return pool_.binary(ExprOp::eq, n.a, n.b);
  bool ordered = n.op == ExprOp::lt || n.op == ExprOp::le;
  if (ordered && ir::is_integer(pool_.type(n.a)))  // not so for NaN
    return simplify_compare(n.op == ExprOp::lt ? ExprOp::le : ExprOp::lt, n.b, n.a);
  return pool_.unary(ExprOp::logical_not, c);
}

ExprId Analyzer::simplify_compare(ExprOp op, ExprId a, ExprId b) {
  if (pool_.type(a) == DType::i64) return compare_sums(op, a, b);
  ExprId x = simplify(a), y = simplify(b);
  return pool_.binary(op, x, y);  // simplify() asks for its range
}

ExprId Analyzer::compare_sums(ExprOp op, ExprId a, ExprId b) {
  ExprId x = simplify(a), y = simplify(b);
  ExprId fallback = pool_.binary(op, x, y);
  if (pool_.is_const(fallback)) return fallback;
  std::optional<Sum> d = exact_difference(y, x);
  if (!d || exhausted()) return fallback;
  auto truth = [&](bool v) { return pool_.const_int(v, DType::boolean); };
  auto shifted = [](const Sum& s, int64_t sign, int64_t by) -> std::optional<Sum> {
    std::optional<Sum> r = scaled(s, sign);
    return r ? add_scaled(*r, Sum::of_constant(by), 1) : r;
  };
  auto proved = [&](const std::optional<Sum>& s) { return s && non_negative(*s); };
  if (op == ExprOp::lt || op == ExprOp::le) {
    std::optional<Sum> guard = op == ExprOp::lt ? shifted(*d, 1, -1) : d;
    if (!guard) return fallback;
    if (proved(guard)) return truth(true);
    if (proved(shifted(*guard, -1, -1))) return truth(false);
    std::optional<Sum> reduced = reduced_guard(*guard);
    return reduced ? order_from_guard(*reduced, fallback) : fallback;
  }
  const bool equal = op == ExprOp::eq;
  if (proved(d) && proved(shifted(*d, -1, 0))) return truth(equal);
  if (proved(shifted(*d, 1, -1)) || proved(shifted(*d, -1, -1))) return truth(!equal);
  int64_t g = divisor(Sum{d->terms, 0});
  if (g > 1 && is_exact(Sum{d->terms, 0}) && d->constant % g != 0) return truth(!equal);
  return equality_from_difference(op, *d, fallback);
}

// "P - N + k >= 0" written as N < P, N <= P, N < c, c <= P or with k beside the shorter side. Where the
// divisor of the terms allows several constants, one that needs no addition is taken.
ExprId Analyzer::order_from_guard(const Sum& s, ExprId fallback) {
  Sum p, n;
  for (const Term& t : s.terms) {
    if (t.coeff == INT64_MIN) return fallback;
    if (t.coeff > 0)
      p.terms.push_back(t);
    else
      n.terms.push_back({t.atom, -t.coeff});
  }
  int64_t k = tightened(s).constant;
  if (k < -(int64_t{1} << 62) || k > (int64_t{1} << 62)) return fallback;
  int64_t g = std::max<int64_t>(divisor(Sum{s.terms, 0}), 1);
  if (is_exact(Sum{s.terms, 0}) && !p.terms.empty() && !n.terms.empty()) {
    if (k <= -1 && -1 - k < g)
      k = -1;
    else if (k <= 0 && -k < g)
      k = 0;
  }
  bool strict = false;
  if (n.terms.empty())
    n.constant = -k;  // -k <= P
  else if (p.terms.empty())
    strict = true, p.constant = k + 1;  // N < k + 1
  else if (k < 0)
    strict = true, n.constant = -k - 1;  // N - k - 1 < P
  else
    p.constant = k;  // N <= P + k
  if (!is_exact(p) || !is_exact(n)) return fallback;
  ExprId left = build(n), right = build(p);
  return pool_.binary(strict ? ExprOp::lt : ExprOp::le, left, right);
}

ExprId Analyzer::equality_from_difference(ExprOp op, Sum s, ExprId fallback) {
  int64_t g = coefficient_gcd(s);
  if (g == 0 || s.constant % g != 0) return fallback;
  if (g > 1) s = divided(s, g);
  // a == b and b == a become the same: the first term by (size, atom) goes left
  const Term* lead = &s.terms[0];
  for (const Term& t : s.terms)
    if (t.coeff == INT64_MIN || gcd_of(t.coeff, 0) > gcd_of(lead->coeff, 0)) lead = &t;
  bool flip = lead->coeff < 0;
  Sum left, right;
  for (const Term& t : s.terms) {
    if (t.coeff == INT64_MIN) return fallback;
    if ((t.coeff > 0) != flip)
      left.terms.push_back({t.atom, t.coeff > 0 ? t.coeff : -t.coeff});
    else
      right.terms.push_back({t.atom, t.coeff > 0 ? t.coeff : -t.coeff});
  }
  if (s.constant == INT64_MIN) return fallback;
  int64_t k = flip ? s.constant : -s.constant;  // left == right + k
  if (k >= 0 || right.terms.empty())
    right.constant = k;
  else
    left.constant = -k;
  if (!is_exact(left) || !is_exact(right)) return fallback;
  ExprId x = build(left), y = build(right);
  return pool_.binary(op, x, y);
}

std::optional<Sum> Analyzer::guard_of(ExprId c) {
  const ExprNode n = pool_[c];
  if ((n.op != ExprOp::lt && n.op != ExprOp::le) || pool_.type(n.a) != DType::i64) return std::nullopt;
  std::optional<Sum> d = exact_difference(n.b, n.a);
  if (d && n.op == ExprOp::lt) d = add_scaled(*d, Sum::of_constant(-1), 1);
  return d;
}

// A cheap implication: b's guard is a's plus something not negative.
bool Analyzer::implies(ExprId a, ExprId b) {
  if (a == b) return true;
  std::optional<Sum> gb = guard_of(b);
  if (!gb) return false;
  auto from = [&](const std::optional<Sum>& ga) {
    if (!ga) return false;
    std::optional<Sum> d = add_scaled(*gb, *ga, -1);
    return d && sum_range(tightened(*d)).lo >= 0;
  };
  if (from(guard_of(a))) return true;
  const ExprNode n = pool_[a];
  if (n.op != ExprOp::eq || pool_.type(n.a) != DType::i64) return false;
  return from(exact_difference(n.a, n.b)) || from(exact_difference(n.b, n.a));
}

ExprId Analyzer::simplify_junction(ExprOp op, ExprId e) {
  const bool conj = op == ExprOp::logical_and;
  auto truth = [&](bool v) { return pool_.const_int(v, DType::boolean); };
  std::vector<ExprId> open{e}, members;
  while (!open.empty()) {
    ExprId m = open.back();
    open.pop_back();
    const ExprNode n = pool_[m];
    if (n.op == op) {
      open.push_back(n.b);
      open.push_back(n.a);
      continue;
    }
    ExprId s = simplify(m);
    if (pool_[s].op == op) {
      open.push_back(pool_[s].b);
      open.push_back(pool_[s].a);
      continue;
    }
    if (int64_t v = 0; pool_.is_const_int(s, &v)) {
      if ((v != 0) != conj) return truth(!conj);
      continue;
    }
    if (std::find(members.begin(), members.end(), s) == members.end()) members.push_back(s);
  }
  if (members.size() <= kMaxJunction) {
    std::vector<bool> gone(members.size(), false);
    for (size_t i = 0; i < members.size(); i++) {
      for (size_t j = 0; j < members.size(); j++) {
        if (i == j || gone[i] || gone[j]) continue;
        // a and b: b goes when a implies it.  a or b: b goes when it implies a.
        if (conj ? implies(members[i], members[j]) : implies(members[j], members[i])) gone[j] = true;
        if (i > j) continue;
        ExprId other = negated(members[j]);
        // a and b is false when a implies not b.  a or b is true when not b implies a.
        if (conj ? implies(members[i], other) : implies(other, members[i])) return truth(!conj);
      }
    }
    size_t kept = 0;
    for (size_t i = 0; i < members.size(); i++)
      if (!gone[i]) members[kept++] = members[i];
    members.resize(kept);
  }
  if (members.empty()) return truth(conj);
  ExprId r = members[0];
  for (size_t i = 1; i < members.size(); i++) r = pool_.binary(op, r, members[i]);
  return r;
}

}  // namespace tilegen::arith
