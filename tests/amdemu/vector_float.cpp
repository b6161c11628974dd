// Vector arithmetic on floats, and conversions.
#include "vector_functions.h"

namespace tilegen::amdemu {

namespace {

float sine_of_turns(float x) {
  double t = x - std::floor((double)x);
  return (float)std::sin(t * 6.283185307179586476925);
}
float cosine_of_turns(float x) {
  double t = x - std::floor((double)x);
  return (float)std::cos(t * 6.283185307179586476925);
}

void add_f32() {
  binary<F32, F32, F32>("v_add_f32", [](float a, float b) { return a + b; });
  binary<F32, F32, F32>("v_sub_f32", [](float a, float b) { return a - b; });
  binary<F32, F32, F32>("v_subrev_f32", [](float a, float b) { return b - a; });
  binary<F32, F32, F32>("v_mul_f32", [](float a, float b) { return a * b; });
  binary<F32, F32, F32>("v_mul_legacy_f32", [](float a, float b) { return a == 0 || b == 0 ? 0.f : a * b; });
  binary<F32, F32, F32>("v_max_f32", [](float a, float b) { return greatest(a, b); });
  binary<F32, F32, F32>("v_min_f32", [](float a, float b) { return least(a, b); });
  ternary<F32, F32, F32, F32>("v_fma_f32", [](float a, float b, float c) { return std::fma(a, b, c); });
  ternary<F32, F32, F32, F32>("v_fmamk_f32", [](float a, float b, float c) { return std::fma(a, b, c); });
  ternary<F32, F32, F32, F32>("v_fmaak_f32", [](float a, float b, float c) { return std::fma(a, b, c); });
  ternary<F32, F32, F32, F32>("v_mad_f32", [](float a, float b, float c) {
    return flushed(flushed(flushed(a) * flushed(b)) + flushed(c));
  });
  accumulating<F32, F32, F32>("v_fmac_f32", [](float a, float b, float c) { return std::fma(a, b, c); });
  accumulating<F32, F32, F32>("v_mac_f32", [](float a, float b, float c) {
    return flushed(flushed(flushed(a) * flushed(b)) + flushed(c));
  });
  ternary<F32, F32, F32, F32>("v_madmk_f32", [](float a, float b, float c) {
    return flushed(flushed(flushed(a) * flushed(b)) + flushed(c));
  });
  ternary<F32, F32, F32, F32>("v_madak_f32", [](float a, float b, float c) {
    return flushed(flushed(flushed(a) * flushed(b)) + flushed(c));
  });
  ternary<F32, F32, F32, F32>("v_min3_f32", [](float a, float b, float c) { return least(least(a, b), c); });
  ternary<F32, F32, F32, F32>("v_max3_f32",
                              [](float a, float b, float c) { return greatest(greatest(a, b), c); });
  ternary<F32, F32, F32, F32>("v_med3_f32", [](float a, float b, float c) { return median(a, b, c); });
  unary<F32, F32>("v_exp_f32", [](float a) { return flushed((float)std::exp2((double)flushed(a))); });
  unary<F32, F32>("v_log_f32", [](float a) { return (float)std::log2((double)flushed(a)); });
  unary<F32, F32>("v_exp_legacy_f32", [](float a) { return flushed((float)std::exp2((double)flushed(a))); });
  unary<F32, F32>("v_log_legacy_f32", [](float a) { return (float)std::log2((double)flushed(a)); });
  unary<F32, F32>("v_rcp_f32", [](float a) { return flushed((float)(1.0 / (double)flushed(a))); });
  unary<F32, F32>("v_rcp_iflag_f32", [](float a) { return flushed((float)(1.0 / (double)flushed(a))); });
  unary<F32, F32>("v_rsq_f32", [](float a) { return (float)(1.0 / std::sqrt((double)flushed(a))); });
  unary<F32, F32>("v_sqrt_f32", [](float a) { return (float)std::sqrt((double)flushed(a)); });
  unary<F32, F32>("v_sin_f32", [](float a) { return sine_of_turns(a); });
  unary<F32, F32>("v_cos_f32", [](float a) { return cosine_of_turns(a); });
  unary<F32, F32>("v_fract_f32", [](float a) {
    float r = a - std::floor(a);
    return r >= 1.f ? 0x1.fffffep-1f : r;
  });
  unary<F32, F32>("v_trunc_f32", [](float a) { return std::trunc(a); });
  unary<F32, F32>("v_ceil_f32", [](float a) { return std::ceil(a); });
  unary<F32, F32>("v_rndne_f32", [](float a) { return std::nearbyint(a); });
  unary<F32, F32>("v_floor_f32", [](float a) { return std::floor(a); });
  unary<I32, F32>("v_frexp_exp_i32_f32", [](float a) { return exponent_of(a); });
  unary<F32, F32>("v_frexp_mant_f32", [](float a) { return mantissa_of(a); });
  binary<F32, F32, I32>("v_ldexp_f32", [](float a, int32_t b) { return std::ldexp(a, b); });
}

void add_f64() {
  binary<F64, F64, F64>("v_add_f64", [](double a, double b) { return a + b; });
  binary<F64, F64, F64>("v_mul_f64", [](double a, double b) { return a * b; });
  binary<F64, F64, F64>("v_max_f64", [](double a, double b) { return greatest(a, b); });
  binary<F64, F64, F64>("v_min_f64", [](double a, double b) { return least(a, b); });
  ternary<F64, F64, F64, F64>("v_fma_f64", [](double a, double b, double c) { return std::fma(a, b, c); });
  accumulating<F64, F64, F64>("v_fmac_f64", [](double a, double b, double c) { return std::fma(a, b, c); });
  unary<F64, F64>("v_rcp_f64", [](double a) { return 1.0 / a; });
  unary<F64, F64>("v_rsq_f64", [](double a) { return 1.0 / std::sqrt(a); });
  unary<F64, F64>("v_sqrt_f64", [](double a) { return std::sqrt(a); });
  unary<F64, F64>("v_fract_f64", [](double a) {
    double r = a - std::floor(a);
    return r >= 1 ? 0x1.fffffffffffffp-1 : r;
  });
  unary<F64, F64>("v_trunc_f64", [](double a) { return std::trunc(a); });
  unary<F64, F64>("v_ceil_f64", [](double a) { return std::ceil(a); });
  unary<F64, F64>("v_rndne_f64", [](double a) { return std::nearbyint(a); });
  unary<F64, F64>("v_floor_f64", [](double a) { return std::floor(a); });
  unary<I32, F64>("v_frexp_exp_i32_f64", [](double a) { return exponent_of(a); });
  unary<F64, F64>("v_frexp_mant_f64", [](double a) { return mantissa_of(a); });
  binary<F64, F64, I32>("v_ldexp_f64", [](double a, int32_t b) { return std::ldexp(a, b); });
}

void add_f16() {
  binary<F16, F16, F16>("v_add_f16", [](float a, float b) { return a + b; });
  binary<F16, F16, F16>("v_sub_f16", [](float a, float b) { return a - b; });
  binary<F16, F16, F16>("v_subrev_f16", [](float a, float b) { return b - a; });
  binary<F16, F16, F16>("v_mul_f16", [](float a, float b) { return a * b; });
  binary<F16, F16, F16>("v_max_f16", [](float a, float b) { return greatest(a, b); });
  binary<F16, F16, F16>("v_min_f16", [](float a, float b) { return least(a, b); });
  for (const char* n : {"v_fma_f16", "v_fmamk_f16", "v_fmaak_f16"})
    ternary<F16D, F16D, F16D, F16D>(n,
                                    [](double a, double b, double c) { return fma_rounded_to_odd(a, b, c); });
  for (const char* n : {"v_mad_f16", "v_madmk_f16", "v_madak_f16"})
    ternary<F16, F16, F16, F16>(
        n, [](float a, float b, float c) { return half_to_float(float_to_half(a * b)) + c; });
  accumulating<F16D, F16D, F16D>("v_fmac_f16",
                                 [](double a, double b, double c) { return fma_rounded_to_odd(a, b, c); });
  accumulating<F16, F16, F16>(
      "v_mac_f16", [](float a, float b, float c) { return half_to_float(float_to_half(a * b)) + c; });
  ternary<F16, F16, F16, F16>("v_min3_f16", [](float a, float b, float c) { return least(least(a, b), c); });
  ternary<F16, F16, F16, F16>("v_max3_f16",
                              [](float a, float b, float c) { return greatest(greatest(a, b), c); });
  ternary<F16, F16, F16, F16>("v_med3_f16", [](float a, float b, float c) { return median(a, b, c); });
  unary<F16D, F16>("v_exp_f16", [](float a) { return std::exp2((double)a); });
  unary<F16D, F16>("v_log_f16", [](float a) { return std::log2((double)a); });
  unary<F16D, F16>("v_rcp_f16", [](float a) { return 1.0 / (double)a; });
  unary<F16D, F16>("v_rsq_f16", [](float a) { return 1.0 / std::sqrt((double)a); });
  unary<F16D, F16>("v_sqrt_f16", [](float a) { return std::sqrt((double)a); });
  unary<F16, F16>("v_sin_f16", [](float a) { return sine_of_turns(a); });
  unary<F16, F16>("v_cos_f16", [](float a) { return cosine_of_turns(a); });
  unary<F16, F16>("v_fract_f16", [](float a) {
    float r = a - std::floor(a);
    return std::min(r, 0x1.ffcp-1f);
  });
  unary<F16, F16>("v_trunc_f16", [](float a) { return std::trunc(a); });
  unary<F16, F16>("v_ceil_f16", [](float a) { return std::ceil(a); });
  unary<F16, F16>("v_rndne_f16", [](float a) { return std::nearbyint(a); });
  unary<F16, F16>("v_floor_f16", [](float a) { return std::floor(a); });
  unary<I16, F16>("v_frexp_exp_i16_f16", [](float a) { return exponent_of(a); });
  unary<F16, F16>("v_frexp_mant_f16", [](float a) { return mantissa_of(a); });
  binary<F16D, F16, I16>("v_ldexp_f16", [](float a, int16_t b) { return std::ldexp((double)a, b); });
}

void add_conversions() {
  unary<F32, I32>("v_cvt_f32_i32", [](int32_t a) { return (float)a; });
  unary<F32, U32>("v_cvt_f32_u32", [](uint32_t a) { return (float)a; });
  unary<U32, F32>("v_cvt_u32_f32", [](float a) { return to_integer<float, uint32_t>(a); });
  unary<I32, F32>("v_cvt_i32_f32", [](float a) { return to_integer<float, int32_t>(a); });
  unary<F64, I32>("v_cvt_f64_i32", [](int32_t a) { return (double)a; });
  unary<F64, U32>("v_cvt_f64_u32", [](uint32_t a) { return (double)a; });
  unary<U32, F64>("v_cvt_u32_f64", [](double a) { return to_integer<double, uint32_t>(a); });
  unary<I32, F64>("v_cvt_i32_f64", [](double a) { return to_integer<double, int32_t>(a); });
  unary<F32, F64>("v_cvt_f32_f64", [](double a) { return (float)a; });
  unary<F64, F32>("v_cvt_f64_f32", [](float a) { return (double)a; });
  unary<F16, F32>("v_cvt_f16_f32", [](float a) { return a; });
  unary<F32, F16>("v_cvt_f32_f16", [](float a) { return a; });
  unary<F16D, U16>("v_cvt_f16_u16", [](uint16_t a) { return (double)a; });
  unary<F16D, I16>("v_cvt_f16_i16", [](int16_t a) { return (double)a; });
  unary<U16, F16>("v_cvt_u16_f16", [](float a) { return to_integer<float, uint16_t>(a); });
  unary<I16, F16>("v_cvt_i16_f16", [](float a) { return to_integer<float, int16_t>(a); });
  unary<I32, F32>("v_cvt_rpi_i32_f32",
                  [](float a) { return to_integer<float, int32_t>(std::floor(a + 0.5f)); });
  unary<I32, F32>("v_cvt_flr_i32_f32", [](float a) { return to_integer<float, int32_t>(std::floor(a)); });
  unary<F32, U32>("v_cvt_f32_ubyte0", [](uint32_t a) { return (float)(a & 255); });
  unary<F32, U32>("v_cvt_f32_ubyte1", [](uint32_t a) { return (float)(a >> 8 & 255); });
  unary<F32, U32>("v_cvt_f32_ubyte2", [](uint32_t a) { return (float)(a >> 16 & 255); });
  unary<F32, U32>("v_cvt_f32_ubyte3", [](uint32_t a) { return (float)(a >> 24); });
  binary<U32, F32, F32>("v_cvt_pkrtz_f16_f32", [](float a, float b) {
    return encode_float(a, kHalf, true) | encode_float(b, kHalf, true) << 16;
  });
  binary<U32, U32, U32>("v_cvt_pk_u16_u32", [](uint32_t a, uint32_t b) {
    return std::min(a, 0xffffu) | std::min(b, 0xffffu) << 16;
  });
  binary<U32, I32, I32>("v_cvt_pk_i16_i32", [](int32_t a, int32_t b) {
    auto s = [](int32_t x) { return (uint32_t)(uint16_t)(x < -32768 ? -32768 : x > 32767 ? 32767 : x); };
    return s(a) | s(b) << 16;
  });
  ternary<U32, F32, U32, U32>("v_cvt_pk_u8_f32", [](float a, uint32_t b, uint32_t c) {
    uint32_t x = std::min(to_integer<float, uint32_t>(std::nearbyint(a)), 255u), s = 8 * (b & 3);
    return (c & ~(255u << s)) | x << s;
  });

  binary<U32, F32, F32>("v_cvt_pknorm_i16_f32", [](float a, float b) {
    auto s = [](float x) {
      return (uint32_t)(uint16_t)(int32_t)std::nearbyint(std::min(std::max(x, -1.f), 1.f) * 32767.f);
    };
    return s(a) | s(b) << 16;
  });
  binary<U32, F32, F32>("v_cvt_pknorm_u16_f32", [](float a, float b) {
    auto s = [](float x) {
      return (uint32_t)(uint16_t)(int32_t)std::nearbyint(std::min(std::max(x, 0.f), 1.f) * 65535.f);
    };
    return s(a) | s(b) << 16;
  });
  binary<U32, U16, U16>("v_pack_b32_f16",
                        [](uint16_t a, uint16_t b) { return (uint32_t)a | (uint32_t)b << 16; });
}

}  // namespace

void add_float_operations() {
  add_f32();
  add_f64();
  add_f16();
  add_conversions();
}

}  // namespace tilegen::amdemu
