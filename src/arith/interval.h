// Interval: a closed range of i64 values, the coarse half of what arith/ knows about an expression.
//
// An i64 value lies within the ends as they are. A sum or product over the mathematical integers may lie
// beyond an end at INT64_MIN / INT64_MAX: arithmetic saturates there and stays there, so that only an
// interval with neither end there tells that an i64 operation has not wrapped. All functions answer with an
// interval that contains op(x, y) for every x and y of the operands; those of // % & | ^ >> and comparisons
// take i64 values.
#pragma once

#include <cstdint>

namespace tilegen::arith {

struct Interval {
  static constexpr int64_t kMin = INT64_MIN;  // minus infinity as a lower end
  static constexpr int64_t kMax = INT64_MAX;  // plus infinity as an upper end

  int64_t lo = kMin;
  int64_t hi = kMax;

  static constexpr Interval whole() { return {}; }
  static constexpr Interval point(int64_t v) { return {v, v}; }
  static constexpr Interval boolean() { return {0, 1}; }

  constexpr bool is_point() const { return lo == hi; }
  constexpr bool is_finite() const { return lo != kMin && hi != kMax; }
  constexpr bool contains(int64_t v) const { return lo <= v && v <= hi; }
  constexpr bool within(Interval o) const { return o.lo <= lo && hi <= o.hi; }
  constexpr bool operator==(const Interval&) const = default;
};

Interval interval_add(Interval a, Interval b);
Interval interval_sub(Interval a, Interval b);
Interval interval_neg(Interval a);
Interval interval_abs(Interval a);
Interval interval_mul(Interval a, Interval b);
Interval interval_scale(Interval a, int64_t k);
Interval interval_floordiv(Interval a, Interval b);  // by zero gives 0, as everywhere
Interval interval_floormod(Interval a, Interval b);
Interval interval_min(Interval a, Interval b);
Interval interval_max(Interval a, Interval b);
Interval interval_bit_and(Interval a, Interval b);
Interval interval_bit_or(Interval a, Interval b);
Interval interval_bit_xor(Interval a, Interval b);
Interval interval_shr(Interval a, Interval amount);  // amounts outside 0..63 are unknown

// Truth values: {0,0}, {1,1} or {0,1}.
Interval interval_lt(Interval a, Interval b);
Interval interval_le(Interval a, Interval b);
Interval interval_eq(Interval a, Interval b);
Interval interval_ne(Interval a, Interval b);
Interval interval_select(Interval cond, Interval a, Interval b);

Interval hull(Interval a, Interval b);
// Values in both; `a` when they have none in common (contradicting facts only happen in dead code).
Interval intersect(Interval a, Interval b);

}  // namespace tilegen::arith
