#include "number_formats.h"

namespace tilegen::amdemu {

namespace {

int exponent_of(double magnitude) {  // magnitude = 1.x * 2^exponent
  int e = 0;
  std::frexp(magnitude, &e);
  return e - 1;
}

uint64_t nearest_even(double v) {
  const double whole = std::floor(v), rest = v - whole;
  const auto n = static_cast<uint64_t>(whole);
  return rest > 0.5 || (rest == 0.5 && (n & 1)) ? n + 1 : n;
}

// Subnormal numbers, `units` of the last place, carry into the exponent by themselves.
uint64_t assembled(int exponent, uint64_t units, const FloatFormat& f) {
  if (exponent < 1 - f.bias) return units;
  return (static_cast<uint64_t>(exponent + f.bias) << f.mantissa_bits) + units -
         (uint64_t{1} << f.mantissa_bits);
}

}  // namespace

uint32_t encode_float(double value, FloatFormat f, bool toward_zero) {
  const uint32_t sign = std::signbit(value) ? 1u << (f.exponent_bits + f.mantissa_bits) : 0;
  const uint32_t infinity = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
  if (std::isnan(value)) return sign | infinity | 1u << (f.mantissa_bits - 1);
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return sign | infinity;
  const int e = exponent_of(magnitude);
  const double scaled = std::ldexp(magnitude, f.mantissa_bits - std::max(e, 1 - f.bias));
  const uint64_t units = toward_zero ? static_cast<uint64_t>(scaled) : nearest_even(scaled);
  const uint64_t bits = assembled(e, units, f);
  if (bits >= infinity) return sign | (toward_zero ? infinity - 1 : infinity);
  return sign | static_cast<uint32_t>(bits);
}

float half_to_float(uint16_t h) {
  const uint32_t sign = (h & 0x8000u) << 16, e = (h >> 10) & 31, m = h & 1023;
  if (e == 31) return std::bit_cast<float>(sign | 0x7f800000u | m << 13);
  if (e != 0) return std::bit_cast<float>(sign | (e + 112) << 23 | m << 13);
  const float f = std::ldexp(static_cast<float>(m), -24);
  return sign ? -f : f;
}

uint16_t float_to_half(float f) { return double_to_half(f); }

uint16_t float_to_bf16(float f) {
  const auto x = std::bit_cast<uint32_t>(f);
  if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(x >> 16 | 0x40);
  return static_cast<uint16_t>((x + 0x7fff + (x >> 16 & 1)) >> 16);
}

float fp8_to_float(uint8_t v, bool bf8) {
  const int bits = bf8 ? 2 : 3, bias = bf8 ? 16 : 8;
  if (v == 0x80) return NAN;
  const int e = (v & 0x7f) >> bits, m = v & ((1 << bits) - 1);
  const float f = e ? std::ldexp(1.0f + static_cast<float>(m) / static_cast<float>(1 << bits), e - bias)
                    : std::ldexp(static_cast<float>(m), 1 - bias - bits);
  return v & 0x80 ? -f : f;
}

uint8_t float_to_fp8(float f, bool bf8, Fp8Rounding rounding) {
  const FloatFormat format = bf8 ? FloatFormat{5, 2, 16} : FloatFormat{4, 3, 8};
  if (std::isnan(f)) return 0x80;
  const uint8_t sign = std::signbit(f) ? 0x80 : 0;
  const double magnitude = std::fabs(static_cast<double>(f));
  if (magnitude == 0) return 0;
  uint64_t bits = 0x80;
  if (!std::isinf(magnitude)) {
    const int e = exponent_of(magnitude);
    const double scaled = std::ldexp(magnitude, format.mantissa_bits - std::max(e, 1 - format.bias));
    bits = assembled(e,
                     rounding.stochastic
                         ? static_cast<uint64_t>(std::floor(scaled + rounding.random / 4294967296.0))
                         : nearest_even(scaled),
                     format);
  }
  if (bits > 0x7f) return rounding.saturating ? static_cast<uint8_t>(sign | 0x7f) : 0x80;
  return bits == 0 ? 0 : static_cast<uint8_t>(sign | bits);
}

double fma_rounded_to_odd(double a, double b, double c) {
  const double product = a * b, sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const double part = sum - product, error = (product - (sum - part)) + (c - part);
  if (error == 0) return sum;
  auto bits = std::bit_cast<int64_t>(sum);
  if ((error > 0) != (sum > 0)) bits -= 1;
  return std::bit_cast<double>(bits | 1);
}

}  // namespace tilegen::amdemu
