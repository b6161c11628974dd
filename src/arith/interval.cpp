#include "arith/interval.h"

#include <algorithm>
#include <bit>

#include "support/checked.h"

namespace tilegen::arith {
namespace {

constexpr int64_t kMin = Interval::kMin;
constexpr int64_t kMax = Interval::kMax;

int64_t saturated(__int128 v) {
  if (v <= kMin) return kMin;
  if (v >= kMax) return kMax;
  return static_cast<int64_t>(v);
}

int64_t product_end(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  bool infinite = a == kMin || a == kMax || b == kMin || b == kMax;
  if (infinite) return (a < 0) != (b < 0) ? kMin : kMax;
  return saturated(static_cast<__int128>(a) * b);
}

int64_t negated_end(int64_t a) {
  if (a == kMin) return kMax;
  if (a == kMax) return kMin;
  return -a;
}

// One corner of a quotient by a positive divisor.
int64_t quotient_end(int64_t a, int64_t d) {
  if (d == kMax) return a < 0 ? -1 : 0;
  if (a == kMin || a == kMax) return a;
  return floor_div(a, d);
}

Interval quotient_by_positive(Interval a, Interval d) {
  int64_t lo = std::min(quotient_end(a.lo, d.lo), quotient_end(a.lo, d.hi));
  int64_t hi = std::max(quotient_end(a.hi, d.lo), quotient_end(a.hi, d.hi));
  return {lo, hi};
}

Interval remainder_by_positive(Interval a, Interval d) {
  if (a.lo >= 0 && a.hi < d.lo) return a;
  if (d.is_point() && a.is_finite() && floor_div(a.lo, d.lo) == floor_div(a.hi, d.lo))
    return {floor_mod(a.lo, d.lo), floor_mod(a.hi, d.lo)};
  int64_t hi = d.hi == kMax ? kMax : d.hi - 1;
  if (a.lo >= 0) hi = std::min(hi, a.hi);
  return {0, hi};
}

// Applies a rule for positive divisors to the parts of `d` left and right of zero, and joins zero's own answer.
template <class Rule, class Mirror>
Interval by_sign_of_divisor(Interval a, Interval d, Rule positive, Mirror mirror) {
  bool any = false;
  Interval out;
  auto join = [&](Interval r) {
    out = any ? hull(out, r) : r;
    any = true;
  };
  if (d.hi > 0) join(positive(a, Interval{std::max<int64_t>(d.lo, 1), d.hi}));
  if (d.lo < 0) {
    int64_t lo = negated_end(std::min<int64_t>(d.hi, -1));
    join(mirror(positive(interval_neg(a), Interval{lo, negated_end(d.lo)})));
  }
  if (d.contains(0)) join(Interval::point(0));
  return out;
}

// Smallest k such that both intervals lie in [-2^k, 2^k).
int magnitude_bits(Interval a, Interval b) {
  auto bits = [](int64_t v) { return std::bit_width(static_cast<uint64_t>(v < 0 ? ~v : v)); };
  return std::max({bits(a.lo), bits(a.hi), bits(b.lo), bits(b.hi)});
}

Interval signed_bits(int k, bool non_negative) {
  if (k >= 63) return non_negative ? Interval{0, kMax} : Interval::whole();
  int64_t limit = int64_t{1} << k;
  return {non_negative ? 0 : -limit, limit - 1};
}

Interval truth(bool always, bool never) {
  if (always) return Interval::point(1);
  if (never) return Interval::point(0);
  return Interval::boolean();
}

}  // namespace

Interval interval_add(Interval a, Interval b) {
  int64_t lo = a.lo == kMin || b.lo == kMin ? kMin : saturated(static_cast<__int128>(a.lo) + b.lo);
  int64_t hi = a.hi == kMax || b.hi == kMax ? kMax : saturated(static_cast<__int128>(a.hi) + b.hi);
  return {lo, hi};
}

Interval interval_neg(Interval a) { return {negated_end(a.hi), negated_end(a.lo)}; }

Interval interval_sub(Interval a, Interval b) { return interval_add(a, interval_neg(b)); }

Interval interval_abs(Interval a) {
  if (a.lo >= 0) return a;
  Interval n = interval_neg(a);
  if (a.hi <= 0) return n;
  return {0, std::max(a.hi, n.hi)};
}

Interval interval_mul(Interval a, Interval b) {
  int64_t p[] = {product_end(a.lo, b.lo), product_end(a.lo, b.hi), product_end(a.hi, b.lo), product_end(a.hi, b.hi)};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}

Interval interval_scale(Interval a, int64_t k) { return interval_mul(a, Interval::point(k)); }

Interval interval_floordiv(Interval a, Interval b) {
  return by_sign_of_divisor(a, b, quotient_by_positive, [](Interval r) { return r; });
}

Interval interval_floormod(Interval a, Interval b) {
  return by_sign_of_divisor(a, b, remainder_by_positive, interval_neg);
}

Interval interval_min(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)}; }
Interval interval_max(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Interval interval_bit_and(Interval a, Interval b) {
  if (a.lo >= 0 && b.lo >= 0) return {0, std::min(a.hi, b.hi)};
  if (a.lo >= 0) return {0, a.hi};
  if (b.lo >= 0) return {0, b.hi};
  return signed_bits(magnitude_bits(a, b), false);
}

Interval interval_bit_or(Interval a, Interval b) {
  bool non_negative = a.lo >= 0 && b.lo >= 0;
  Interval r = signed_bits(magnitude_bits(a, b), non_negative);
  if (non_negative) r.lo = std::max(a.lo, b.lo);
  return r;
}

Interval interval_bit_xor(Interval a, Interval b) {
  return signed_bits(magnitude_bits(a, b), a.lo >= 0 && b.lo >= 0);
}

Interval interval_shr(Interval a, Interval amount) {
  Interval any{std::min<int64_t>(a.lo, 0), std::max<int64_t>(a.hi, -1)};
  if (!amount.is_point() || amount.lo < 0 || amount.lo > 62) return any;
  return quotient_by_positive(a, Interval::point(int64_t{1} << amount.lo));
}

// Infinite ends compare like the numbers they are stored as: i64 values lie within them.
Interval interval_lt(Interval a, Interval b) { return truth(a.hi < b.lo, a.lo >= b.hi); }
Interval interval_le(Interval a, Interval b) { return truth(a.hi <= b.lo, a.lo > b.hi); }
Interval interval_eq(Interval a, Interval b) {
  return truth(a.is_point() && a == b, a.hi < b.lo || b.hi < a.lo);
}
Interval interval_ne(Interval a, Interval b) {
  return truth(a.hi < b.lo || b.hi < a.lo, a.is_point() && a == b);
}

Interval interval_select(Interval cond, Interval a, Interval b) {
  if (cond == Interval::point(1)) return a;
  if (cond == Interval::point(0)) return b;
  return hull(a, b);
}

Interval hull(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Interval intersect(Interval a, Interval b) {
  Interval r{std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
  return r.lo <= r.hi ? r : a;
}

}  // namespace tilegen::arith
