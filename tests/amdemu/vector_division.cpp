// The steps of IEEE division.
#include "vector_functions.h"

namespace tilegen::amdemu {

namespace {

// ---- division helpers
template <class V>
int biased_exponent(V v) {
  return sizeof(V) == 4 ? (int)(std::bit_cast<uint32_t>((float)v) >> 23 & 255)
                        : (int)(std::bit_cast<uint64_t>((double)v) >> 52 & 2047);
}
template <class T>
void v_div_scale(Wave& w, const Instruction& in) {
  typedef typename T::Value V;
  SourceBuffer t0, t1, t2;
  uint64_t m = w.exec(), vc = 0;
  Source a = source_of<T>(w, in, 2, 0, t0), b = source_of<T>(w, in, 3, 1, t1),
         c = source_of<T>(w, in, 4, 2, t2);
  uint32_t* d = destination<T>(w, in, m);
  constexpr bool f = T::kBits == 32;
  const V mn = f ? (V)0x1p-126 : (V)0x1p-1022;
  const int up = f ? 64 : 128;
  auto den = [&](V x) { return x != 0 && std::fabs(x) < mn; };
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    V s0 = element<T>(a, l, 0), s1 = element<T>(b, l, 0), s2 = element<T>(c, l, 0), r = s0;
    bool vb = false;
    auto same = [](V x, V y) { return memcmp(&x, &y, sizeof x) == 0; };
    if (s2 == 0 || s1 == 0)
      r = NAN;
    else if (biased_exponent(s2) - biased_exponent(s1) >= (f ? 96 : 768)) {
      vb = true;
      if (same(s0, s1)) r = std::ldexp(s0, up);
    } else if (den(s1))
      r = std::ldexp(s0, up);
    else if (den((V)1 / s1) && den(s2 / s1)) {
      vb = true;
      if (same(s0, s1)) r = std::ldexp(s0, -up);
    } else if (den((V)1 / s1))
      r = std::ldexp(s0, -up);
    else if (den(s2 / s1)) {
      vb = true;
      if (same(s0, s2)) r = std::ldexp(s0, up);
    } else if (biased_exponent(s2) <= (f ? 23 : 53))
      r = std::ldexp(s0, up);
    if (vb) vc |= 1ull << l;
    store_lane<T>(in, d, l, T::bits(r));
  }
  w.set_pair(in.operands[1].first, vc);
}
template <class T>
void v_div_fmas(Wave& w, const Instruction& in) {
  typedef typename T::Value V;
  SourceBuffer t0, t1, t2;
  uint64_t m = w.exec();
  Source a = source_of<T>(w, in, 1, 0, t0), b = source_of<T>(w, in, 2, 1, t1),
         c = source_of<T>(w, in, 3, 2, t2);
  uint32_t* d = destination<T>(w, in, m);
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    V x = element<T>(a, l, 0), y = element<T>(b, l, 0), z = element<T>(c, l, 0), r;
    // the post-scale goes up for a large quotient and down for a small one; one rounding in all
    if (!(w.vcc() >> l & 1) || z != z || std::isinf(z))
      r = std::fma(x, y, z);
    else if (T::kBits == 32)
      r = (V)(fma_rounded_to_odd(x, y, z) * (std::fabs(z) >= 2 ? 0x1p64 : 0x1p-64));
    else
      r = (V)(((__float128)x * y + z) * (std::fabs(z) >= 2 ? (__float128)0x1p128 : (__float128)0x1p-128));
    store_lane<T>(in, d, l, encoded<T>(r, in, flushes_output<T>(w)));
  }
}
template <class V>
V fixed_quotient(V q, V den, V num, int lim) {
  bool sg = std::signbit(den) != std::signbit(num);
  V inf = std::numeric_limits<V>::infinity();
  if (num != num) return num;
  if (den != den) return den;
  if ((den == 0 && num == 0) || (std::isinf(den) && std::isinf(num)))
    return -std::numeric_limits<V>::quiet_NaN();
  if (den == 0 || std::isinf(num)) return sg ? -inf : inf;
  if (std::isinf(den) || num == 0) return sg ? (V)-0.0 : (V)0;
  if (lim && biased_exponent(num) - biased_exponent(den) < -lim) return sg ? (V)-0.0 : (V)0;
  if (q != q) return sg ? -inf : inf;  // the scaled chain overflowed
  return sg ? -std::fabs(q) : std::fabs(q);
}
}  // namespace

void add_division_operations() {
  ternary<F16, F16, F16, F16>("v_div_fixup_legacy_f16",
                              [](float a, float b, float c) { return fixed_quotient(a, b, c, 0); });
  ternary<F32, F32, F32, F32>("v_div_fixup_f32",
                              [](float a, float b, float c) { return fixed_quotient(a, b, c, 150); });
  ternary<F64, F64, F64, F64>("v_div_fixup_f64",
                              [](double a, double b, double c) { return fixed_quotient(a, b, c, 1075); });
  ternary<F16, F16, F16, F16>("v_div_fixup_f16",
                              [](float a, float b, float c) { return fixed_quotient(a, b, c, 0); });
  add_operation("v_div_scale_f32", v_div_scale<F32>);
  add_operation("v_div_scale_f64", v_div_scale<F64>);
  add_operation("v_div_fmas_f32", v_div_fmas<F32>);
  add_operation("v_div_fmas_f64", v_div_fmas<F64>);
}

}  // namespace tilegen::amdemu
