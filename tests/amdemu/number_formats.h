// Floats of fewer bits than the host's, and one rounding where the instructions round once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tilegen::amdemu {

// `value` in a format of IEEE's form, to nearest even or towards zero.
struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
};
uint32_t encode_float(double value, FloatFormat format, bool toward_zero);

constexpr FloatFormat kHalf{5, 10, 15};

float half_to_float(uint16_t h);
inline uint16_t double_to_half(double v) { return static_cast<uint16_t>(encode_float(v, kHalf, false)); }
uint16_t float_to_half(float f);
inline float bf16_to_float(uint16_t b) { return std::bit_cast<float>(uint32_t{b} << 16); }
uint16_t float_to_bf16(float f);

// e4m3 and, with `bf8`, e5m2 of the kind without infinities and negative zero (FNUZ). `random`: what is added
// below the last bit where the rounding is stochastic.
float fp8_to_float(uint8_t v, bool bf8);
struct Fp8Rounding {
  bool saturating = false, stochastic = false;
  uint32_t random = 0;
};
uint8_t float_to_fp8(float f, bool bf8, Fp8Rounding rounding);

// a * b, exact in double, plus c, rounded to odd: a second rounding to fewer bits is the correct one.
double fma_rounded_to_odd(double a, double b, double c);

}  // namespace tilegen::amdemu
