#include "arith/interval.h"

#include <algorithm>
#include <bit>

#include "support/checked.h"

namespace tilegen::arith {
namespace {

constexpr int64_t kMin = Interval::kMin;
constexpr int64_t kMax = Interval::kMax;

using Wide = __int128;
struct WideInterval {
  Wide lo, hi;
};

int64_t saturated(Wide v) {
  if (v <= kMin) return kMin;
  if (v >= kMax) return kMax;
  return static_cast<int64_t>(v);
}

constexpr Wide kInfinite = static_cast<Wide>(1) << 126;

// What lies at an end of i64 may lie anywhere beyond it.
WideInterval extended(Interval a) {
  return {a.lo == kMin ? -kInfinite : a.lo, a.hi == kMax ? kInfinite : a.hi};
}

Wide product_end(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  const bool infinite = a == kInfinite || a == -kInfinite || b == kInfinite || b == -kInfinite;
  if (infinite) return (a < 0) != (b < 0) ? -kInfinite : kInfinite;
  return a * b;
}

// Operands of a division are i64 values: their ends are numbers, whose negatives need one bit more.
WideInterval wide(Interval a) { return {a.lo, a.hi}; }
WideInterval negated(WideInterval a) { return {-a.hi, -a.lo}; }

Wide floored(Wide a, Wide d) { return a / d - (a % d < 0); }  // d > 0

WideInterval quotient_by_positive(WideInterval a, WideInterval d) {
  return {std::min(floored(a.lo, d.lo), floored(a.lo, d.hi)),
          std::max(floored(a.hi, d.lo), floored(a.hi, d.hi))};
}

WideInterval remainder_by_positive(WideInterval a, WideInterval d) {
  if (a.lo >= 0 && a.hi < d.lo) return a;
  const Wide block = floored(a.lo, d.lo);
  if (d.lo == d.hi && block == floored(a.hi, d.lo)) return {a.lo - block * d.lo, a.hi - block * d.lo};
  return {0, a.lo >= 0 ? std::min(d.hi - 1, a.hi) : d.hi - 1};
}

// Applies a rule for positive divisors to the parts of `d` left and right of zero, and joins zero's own
// answer.
template <class Rule, class Mirror>
Interval by_sign_of_divisor(Interval a, Interval d, Rule positive, Mirror mirror) {
  bool any = false;
  Interval out;
  auto join = [&](WideInterval r) {
    const Interval part{saturated(r.lo), saturated(r.hi)};
    out = any ? hull(out, part) : part;
    any = true;
  };
  if (d.hi > 0) join(positive(wide(a), {std::max<int64_t>(d.lo, 1), d.hi}));
  if (d.lo < 0) join(mirror(positive(negated(wide(a)), negated({d.lo, std::min<int64_t>(d.hi, -1)}))));
  if (d.contains(0)) join({0, 0});
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
  int64_t lo = a.lo == kMin || b.lo == kMin ? kMin : saturated(static_cast<Wide>(a.lo) + b.lo);
  int64_t hi = a.hi == kMax || b.hi == kMax ? kMax : saturated(static_cast<Wide>(a.hi) + b.hi);
  return {lo, hi};
}

Interval interval_neg(Interval a) {
  const WideInterval w = extended(a);
  return {saturated(-w.hi), saturated(-w.lo)};
}

Interval interval_sub(Interval a, Interval b) { return interval_add(a, interval_neg(b)); }

Interval interval_abs(Interval a) {
  if (a.lo >= 0) return a;
  Interval n = interval_neg(a);
  if (a.hi <= 0) return n;
  return {0, std::max(a.hi, n.hi)};
}

Interval interval_mul(Interval a, Interval b) {
  const WideInterval x = extended(a), y = extended(b);
  const Wide p[] = {product_end(x.lo, y.lo), product_end(x.lo, y.hi), product_end(x.hi, y.lo),
                    product_end(x.hi, y.hi)};
  return {saturated(*std::min_element(p, p + 4)), saturated(*std::max_element(p, p + 4))};
}

Interval interval_scale(Interval a, int64_t k) { return interval_mul(a, Interval::point(k)); }

Interval interval_floordiv(Interval a, Interval b) {
  return by_sign_of_divisor(a, b, quotient_by_positive, [](WideInterval r) { return r; });
}

Interval interval_floormod(Interval a, Interval b) {
  return by_sign_of_divisor(a, b, remainder_by_positive, negated);
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
  if (!amount.is_point() || amount.lo < 0 || amount.lo > 63) return any;
  return {a.lo >> amount.lo, a.hi >> amount.lo};
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
