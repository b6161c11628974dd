// Functions of one lane that several instructions share.
#pragma once

#include "vector_operands.h"

namespace tilegen::amdemu {

template <class V>
V least(V a, V b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == 0 && b == 0) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class V>
V greatest(V a, V b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == 0 && b == 0) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
inline float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.f, x) : x; }
template <class V>
V median(V a, V b, V c) {
  if constexpr (std::is_floating_point<V>::value)
    if (a != a || b != b || c != c) return least(least(a, b), c);
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}
template <class V, class I>
I to_integer(V v) {
  if (v != v) return 0;
  double lo = (double)std::numeric_limits<I>::min(), hi = (double)std::numeric_limits<I>::max();
  double t = std::trunc((double)v);
  if (t <= lo) return std::numeric_limits<I>::min();
  if (t >= hi) return std::numeric_limits<I>::max();
  return (I)t;
}
inline int32_t exponent_of(double v) {
  if (v == 0 || !std::isfinite(v)) return 0;
  int e;
  std::frexp(v, &e);
  return e;
}
template <class V>
V mantissa_of(V v) {
  if (v == 0 || !std::isfinite(v)) return v;
  int e;
  return std::frexp(v, &e);
}
inline float low_half(uint32_t a) { return half_to_float((uint16_t)a); }
inline float high_half(uint32_t a) { return half_to_float((uint16_t)(a >> 16)); }

}  // namespace tilegen::amdemu
