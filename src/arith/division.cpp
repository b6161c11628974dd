// Quotients and remainders of sums. Every rule needs a sum that does not wrap over i64 ("exact").
//
// One loop works a sum down, moving finished parts to the result:
//   multiples of c leave                 (8*a + b) // 8     -> a + b // 8
//   a rest within one block folds        b // 8             -> 0 for 0 <= b < 8
//   a low part that never carries drops  (8*a + b) // 16    -> (8*a) // 16
//   common factors cancel                (8*a) // 16        -> a // 2
//   nested divisions merge               (x // a + k) // b  -> (x + k*a) // (a*b)
// What is left becomes an atom.
#include <algorithm>

#include "arith/analyzer.h"
#include "support/checked.h"

namespace tilegen::arith {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;

namespace {

constexpr int kMaxRounds = 24;

// The block index that every value of a range falls in, blocks being c wide.
std::optional<int64_t> one_block(Interval r, int64_t c) {
  if (!r.is_finite()) return std::nullopt;
  int64_t q = floor_div(r.lo, c);
  return q == floor_div(r.hi, c) ? std::optional<int64_t>(q) : std::nullopt;
}

bool all_negative(const Sum& s) {
  return !s.terms.empty() &&
         std::all_of(s.terms.begin(), s.terms.end(), [](const Term& t) { return t.coeff < 0; });
}

// Moves whole multiples of c from `rest` to `out` (divided by c); false on overflow.
bool extract_multiples(Sum& rest, int64_t c, Sum* out) {
  Sum whole, part;
  for (const Term& t : rest.terms) {
    if (t.coeff / c != 0) whole.terms.push_back({t.atom, t.coeff / c});
    if (t.coeff % c != 0) part.terms.push_back({t.atom, t.coeff % c});
  }
  whole.constant = floor_div(rest.constant, c);
  part.constant = floor_mod(rest.constant, c);
  std::optional<Sum> sum = add_scaled(*out, whole, 1);
  if (!sum) return false;
  *out = std::move(*sum);
  rest = std::move(part);
  return true;
}

}  // namespace

// Terms that lie below a factor g of c, together within [q*g, (q+1)*g), never carry into the rest. They are
// replaced by q*g; `dropped` receives what was below, reduced to [0, g).
bool Analyzer::drop_low_part(Sum& rest, int64_t c, Sum* dropped) {
  std::vector<int64_t> candidates;
  auto reach = [&](const Term& t) {  // gcd(c, coefficient * divisor of the atom); c == 0 admits every factor
    int64_t g = gcd_of(c, t.coeff), d = atom_divisor(t.atom);
    if (c == 0) return checked_mul(g, d).value_or(g);
    return d == 0 ? c : g * gcd_of(c / g, d);
  };
  for (const Term& t : rest.terms) candidates.push_back(reach(t));
  std::sort(candidates.begin(), candidates.end(), std::greater<>());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  for (int64_t g : candidates) {
    if (g <= 1) continue;
    Sum high, low;
    for (const Term& t : rest.terms) (reach(t) % g == 0 ? high : low).terms.push_back(t);
    low.constant = floor_mod(rest.constant, g);
    std::optional<int64_t> multiple = checked_sub(rest.constant, low.constant);
    if (!multiple || high.terms.empty() || (low.terms.empty() && low.constant == 0)) continue;
    high.constant = *multiple;
    std::optional<int64_t> q = one_block(sum_range(low), g);
    if (!q) continue;
    std::optional<int64_t> block = checked_mul(*q, g);
    if (!block) continue;
    std::optional<int64_t> constant = checked_add(high.constant, *block),
                           below = checked_sub(low.constant, *block);
    if (!constant || !below) continue;
    high.constant = *constant;
    low.constant = *below;
    rest = std::move(high);
    if (dropped) *dropped = std::move(low);
    return true;
  }
  return false;
}

// (x // b + k) // c and ((x % b)) // c with c dividing b.
std::optional<Sum> Analyzer::nested_quotient(const Sum& rest, int64_t c) {
  if (rest.terms.size() != 1 || rest.terms[0].coeff != 1) return std::nullopt;
  const ExprNode n = pool_[rest.terms[0].atom];
  int64_t b = 0;
  if ((n.op != ExprOp::floordiv && n.op != ExprOp::floormod) || !pool_.is_const_int(n.b, &b) || b <= 0)
    return std::nullopt;
  if (n.op == ExprOp::floordiv) {
    std::optional<int64_t> divisor = checked_mul(b, c), shift = checked_mul(rest.constant, b);
    if (!divisor || !shift) return std::nullopt;
    const Sum value = linear(n.a);
    std::optional<Sum> x = add_scaled(value, Sum::of_constant(*shift), 1);
    if (!x || !is_exact(value) || !is_exact(*x)) return std::nullopt;
    return quotient(*x, *divisor);
  }
  if (b % c != 0 || rest.constant != 0) return std::nullopt;
  return remainder(quotient(linear(n.a), c), b / c);
}

Sum Analyzer::quotient(const Sum& a, int64_t c) {
  if (c == 0) return Sum{};
  if (c == 1) return a;
  auto as_atom = [&](const Sum& s, int64_t d) {
    ExprId x = build(s);
    return atom_unless_folded(ExprOp::floordiv, pool_.floordiv(x, pool_.const_int(d)));
  };
  if (depth_ > 250 || !step() || !is_exact(a)) return as_atom(a, c);
  if (c < 0) {
    std::optional<Sum> minus = scaled(a, -1);
    if (!minus || c == INT64_MIN || !is_exact(*minus)) return as_atom(a, c);
    return quotient(*minus, -c);
  }
  depth_++;
  const int64_t original_c = c;
  Sum out, rest = a;
  Sum last;  // quotient of the rest, added to `out` at the end
  for (int round = 0; round < kMaxRounds; round++) {
    if (!extract_multiples(rest, c, &out)) {
      depth_--;
      return as_atom(a, original_c);
    }
    if (rest.terms.empty()) break;
    if (std::optional<int64_t> q = one_block(sum_range(rest), c)) {
      last.constant = *q;
      rest = Sum{};
      break;
    }
    if (drop_low_part(rest, c, nullptr)) continue;
    int64_t g = gcd_of(c, coefficient_gcd(rest));
    if (g > 1) {
      rest = divided(rest, g);
      c /= g;
      continue;
    }
    break;
  }
  if (!rest.terms.empty()) {
    std::optional<Sum> q, mirrored = all_negative(rest) ? scaled(rest, -1) : std::nullopt;
    if (mirrored) mirrored = add_scaled(*mirrored, Sum::of_constant(c - 1), 1);
    // -x // c == -((x + c - 1) // c)
    if (mirrored && is_exact(*mirrored)) q = scaled(quotient(*mirrored, c), -1);
    if (!q) q = nested_quotient(rest, c);
    if (!q && is_exact(rest)) q = as_atom(rest, c);
    if (!q) {
      depth_--;
      return as_atom(a, original_c);
    }
    last = std::move(*q);
  }
  depth_--;
  std::optional<Sum> sum = add_scaled(out, last, 1);
  return sum ? joined(std::move(*sum)) : as_atom(a, original_c);
}

// k*(x % b) is k*x modulo c when c divides k*b.
bool Analyzer::unwrap_remainders(Sum& rest, int64_t c) {
  for (const Term& t : Terms(rest.terms)) {
    const ExprNode n = pool_[t.atom];
    int64_t b = 0;
    if (n.op != ExprOp::floormod || !pool_.is_const_int(n.b, &b) || b <= 0) continue;
    std::optional<int64_t> kb = checked_mul(t.coeff, b);
    if (!kb || *kb % c != 0) continue;
    std::optional<Sum> r = add_scaled(rest, Sum::of_atom(t.atom, t.coeff), -1);
    const Sum value = linear(n.a);
    if (r) r = add_scaled(*r, value, t.coeff);
    if (!r || !is_exact(value) || !is_exact(*r)) continue;
    rest = std::move(*r);
    return true;
  }
  return false;
}

// The same modulo c, with coefficients below c in magnitude.
Sum Analyzer::without_multiples(const Sum& s, int64_t c) {
  Sum r;
  for (const Term& t : s.terms) {
    int64_t g = gcd_of(c, t.coeff), d = atom_divisor(t.atom);
    if (t.coeff % c != 0 && (d == 0 || d % (c / g) != 0)) r.terms.push_back({t.atom, t.coeff % c});
  }
  r.constant = floor_mod(s.constant, c);
  return r;
}

// Of a rest that no rule reduces further: -x % c == c - 1 - (x + c - 1) % c, else an atom.
std::optional<Sum> Analyzer::irreducible_remainder(const Sum& rest, int64_t c, bool power_of_two) {
  if (!is_exact(rest) && !power_of_two) return std::nullopt;
  if (all_negative(rest) && is_exact(rest)) {
    std::optional<Sum> mirrored = add_scaled(Sum::of_constant(c - 1), rest, -1);
    if (mirrored && !is_exact(*mirrored)) mirrored.reset();
    std::optional<Sum> r =
        mirrored ? add_scaled(Sum::of_constant(c - 1), remainder(*mirrored, c), -1) : std::nullopt;
    if (r) return r;
  }
  ExprId x = build(rest);
  return atom_unless_folded(ExprOp::floormod, pool_.floormod(x, pool_.const_int(c)));
}

Sum Analyzer::remainder(const Sum& a, int64_t c) {
  if (c == 0 || c == 1 || c == -1) return Sum{};
  auto as_atom = [&](const Sum& s, int64_t d) {
    ExprId x = build(s);
    return atom_unless_folded(ExprOp::floormod, pool_.floormod(x, pool_.const_int(d)));
  };
  bool power_of_two = c > 0 && (c & (c - 1)) == 0;  // reducing modulo c commutes with wrapping
  if (depth_ > 250 || !step() || (!is_exact(a) && !power_of_two)) return as_atom(a, c);
  if (c < 0) {
    std::optional<Sum> minus = scaled(a, -1);
    if (!minus || c == INT64_MIN || !is_exact(*minus)) return as_atom(a, c);
    std::optional<Sum> r = scaled(remainder(*minus, -c), -1);
    return r ? *r : as_atom(a, c);
  }
  depth_++;
  const int64_t original_c = c;
  Sum out, rest = a, last;
  int64_t scale = 1;
  for (int round = 0; round < kMaxRounds; round++) {
    rest = without_multiples(rest, c);
    if (!is_exact(rest)) break;
    if (rest.terms.empty()) {
      last.constant = rest.constant;
      rest = Sum{};
      break;
    }
    if (unwrap_remainders(rest, c)) continue;
    if (std::optional<int64_t> q = one_block(sum_range(rest), c)) {
      std::optional<Sum> within = add_scaled(rest, Sum::of_constant(*q), -c);
      if (!within) break;
      last = std::move(*within);
      rest = Sum{};
      break;
    }
    Sum below;
    if (drop_low_part(rest, c, &below)) {
      std::optional<Sum> sum = add_scaled(out, below, scale);
      if (!sum) {
        depth_--;
        return as_atom(a, original_c);
      }
      out = std::move(*sum);
      continue;
    }
    int64_t g = gcd_of(gcd_of(c, coefficient_gcd(rest)), rest.constant);
    if (g > 1) {
      rest = divided(rest, g);
      c /= g;
      scale *= g;
      continue;
    }
    break;
  }
  if (!rest.terms.empty()) {
    std::optional<Sum> r = irreducible_remainder(rest, c, power_of_two);
    if (!r) {
      depth_--;
      return as_atom(a, original_c);
    }
    last = std::move(*r);
  }
  depth_--;
  std::optional<Sum> sum = add_scaled(out, last, scale);
  return sum ? joined(std::move(*sum)) : as_atom(a, original_c);
}

std::optional<ExprId> Analyzer::without_factor(ExprId atom, const std::vector<ExprId>& factor) {
  std::vector<ExprId> all = factors(atom);
  for (ExprId f : factor) {
    auto it = std::find(all.begin(), all.end(), f);
    if (it == all.end()) return std::nullopt;
    all.erase(it);
  }
  return product(std::move(all));
}

// A divisor that is no constant: x // n folds where 0 <= x < n, and (i*n + j) // n -> i + j // n for n > 0.
Sum Analyzer::symbolic_division(ExprOp op, const Sum& a, const Sum& b) {
  ExprId x = build(a), y = build(b);
  auto as_atom = [&] { return atom_unless_folded(op, pool_.binary(op, x, y)); };
  if (depth_ > 250 || !is_exact(a) || !is_exact(b) || sum_range(b).lo < 1) return as_atom();
  Sum whole, rest = a;
  if (b.terms.size() == 1 && b.terms[0].coeff == 1 && b.constant == 0) {
    std::vector<ExprId> factor = factors(b.terms[0].atom);
    rest = Sum::of_constant(a.constant);
    for (const Term& t : a.terms) {
      std::optional<ExprId> q = is_exact_product(t.atom) ? without_factor(t.atom, factor) : std::nullopt;
      std::optional<Sum> r = q ? add_scaled(whole, linear(*q), t.coeff)
                               : add_scaled(rest, Sum::of_atom(t.atom, t.coeff), 1);
      if (!r) return as_atom();
      (q ? whole : rest) = std::move(*r);
    }
  }
  std::optional<Sum> room = add_scaled(b, rest, -1);
  if (room) room = add_scaled(*room, Sum::of_constant(1), -1);
  Sum last;
  if (room && non_negative(rest) && non_negative(*room)) {
    last = op == ExprOp::floordiv ? Sum{} : rest;
  } else {
    ExprId r = build(rest);
    last = atom_unless_folded(op, pool_.binary(op, r, y));
  }
  if (op == ExprOp::floormod) return last;
  std::optional<Sum> sum = add_scaled(whole, last, 1);
  return sum ? *sum : as_atom();
}

}  // namespace tilegen::arith
