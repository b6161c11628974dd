// Vector arithmetic on integers, moves and dot products.
#include "vector_functions.h"

namespace tilegen::amdemu {

namespace {

constexpr uint32_t low_24(uint32_t v) { return v & 0xffffffu; }
constexpr int32_t signed_24(uint32_t v) { return static_cast<int32_t>(v << 8) >> 8; }

void add_moves() {
  for (const char* n : {"v_mov_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32",
                        "v_accvgpr_read", "v_accvgpr_write"})
    unary<U32, U32>(n, [](uint32_t a) { return a; });
  unary<U64, U64>("v_mov_b64", [](uint64_t a) { return a; });
  add_operation("v_nop", [](Wave&, const Instruction&) {});
}

void add_word_arithmetic() {
  binary<U32, U32, U32>("v_add_u32", [](uint32_t a, uint32_t b) { return (int64_t)a + b; });
  binary<U32, U32, U32>("v_sub_u32", [](uint32_t a, uint32_t b) { return (int64_t)a - b; });
  binary<U32, U32, U32>("v_subrev_u32", [](uint32_t a, uint32_t b) { return (int64_t)b - a; });
  binary<I32, I32, I32>("v_add_i32", [](int32_t a, int32_t b) { return (int64_t)a + b; });
  binary<I32, I32, I32>("v_sub_i32", [](int32_t a, int32_t b) { return (int64_t)a - b; });
  binary<U32, U32, U32>("v_mul_lo_u32", [](uint32_t a, uint32_t b) { return a * b; });
  binary<U32, U32, U32>("v_mul_lo_i32", [](uint32_t a, uint32_t b) { return a * b; });
  binary<U32, U32, U32>("v_mul_hi_u32",
                        [](uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); });
  binary<U32, I32, I32>("v_mul_hi_i32",
                        [](int32_t a, int32_t b) { return (uint32_t)((int64_t)a * b >> 32); });
  binary<U32, U32, U32>("v_mul_u32_u24", [](uint32_t a, uint32_t b) { return low_24(a) * low_24(b); });
  binary<U32, U32, U32>("v_mul_hi_u32_u24", [](uint32_t a, uint32_t b) {
    return (uint32_t)((uint64_t)low_24(a) * low_24(b) >> 32);
  });
  binary<U32, U32, U32>("v_mul_i32_i24", [](uint32_t a, uint32_t b) {
    return (uint32_t)((int64_t)signed_24(a) * signed_24(b));
  });
  binary<U32, U32, U32>("v_mul_hi_i32_i24", [](uint32_t a, uint32_t b) {
    return (uint32_t)((int64_t)signed_24(a) * signed_24(b) >> 32);
  });
  ternary<U32, U32, U32, U32>("v_mad_u32_u24", [](uint32_t a, uint32_t b, uint32_t c) {
    return (int64_t)((uint64_t)low_24(a) * low_24(b) + c);
  });
  ternary<I32, U32, U32, I32>("v_mad_i32_i24", [](uint32_t a, uint32_t b, int32_t c) {
    return (int64_t)signed_24(a) * signed_24(b) + c;
  });
  ternary<U32, U16, U16, U32>(
      "v_mad_u32_u16", [](uint16_t a, uint16_t b, uint32_t c) { return (int64_t)((uint64_t)a * b + c); });
  ternary<I32, I16, I16, I32>("v_mad_i32_i16",
                              [](int16_t a, int16_t b, int32_t c) { return (int64_t)a * b + c; });
  binary<I32, I32, I32>("v_min_i32", [](int32_t a, int32_t b) { return std::min(a, b); });
  binary<I32, I32, I32>("v_max_i32", [](int32_t a, int32_t b) { return std::max(a, b); });
  binary<U32, U32, U32>("v_min_u32", [](uint32_t a, uint32_t b) { return std::min(a, b); });
  binary<U32, U32, U32>("v_max_u32", [](uint32_t a, uint32_t b) { return std::max(a, b); });
  ternary<I32, I32, I32, I32>("v_min3_i32", [](int32_t a, int32_t b, int32_t c) {
    return std::min({a, b, c});
  });
  ternary<I32, I32, I32, I32>("v_max3_i32", [](int32_t a, int32_t b, int32_t c) {
    return std::max({a, b, c});
  });
  ternary<I32, I32, I32, I32>("v_med3_i32", [](int32_t a, int32_t b, int32_t c) { return median(a, b, c); });
  ternary<U32, U32, U32, U32>("v_min3_u32", [](uint32_t a, uint32_t b, uint32_t c) {
    return std::min({a, b, c});
  });
  ternary<U32, U32, U32, U32>("v_max3_u32", [](uint32_t a, uint32_t b, uint32_t c) {
    return std::max({a, b, c});
  });
  ternary<U32, U32, U32, U32>("v_med3_u32",
                              [](uint32_t a, uint32_t b, uint32_t c) { return median(a, b, c); });
  ternary<I16, I16, I16, I16>("v_min3_i16", [](int16_t a, int16_t b, int16_t c) {
    return std::min({a, b, c});
  });
}

void add_word_order() {
  ternary<I16, I16, I16, I16>("v_max3_i16", [](int16_t a, int16_t b, int16_t c) {
    return std::max({a, b, c});
  });
  ternary<I16, I16, I16, I16>("v_med3_i16", [](int16_t a, int16_t b, int16_t c) { return median(a, b, c); });
  ternary<U16, U16, U16, U16>("v_min3_u16", [](uint16_t a, uint16_t b, uint16_t c) {
    return std::min({a, b, c});
  });
  ternary<U16, U16, U16, U16>("v_max3_u16", [](uint16_t a, uint16_t b, uint16_t c) {
    return std::max({a, b, c});
  });
  ternary<U16, U16, U16, U16>("v_med3_u16",
                              [](uint16_t a, uint16_t b, uint16_t c) { return median(a, b, c); });
  binary<U32, U32, U32>("v_lshrrev_b32", [](uint32_t a, uint32_t b) { return b >> (a & 31); });
  binary<U32, U32, U32>("v_lshlrev_b32", [](uint32_t a, uint32_t b) { return b << (a & 31); });
  binary<U32, U32, I32>("v_ashrrev_i32", [](uint32_t a, int32_t b) { return b >> (a & 31); });
  binary<U64, U32, U64>("v_lshlrev_b64", [](uint32_t a, uint64_t b) { return b << (a & 63); });
  binary<U64, U32, U64>("v_lshrrev_b64", [](uint32_t a, uint64_t b) { return b >> (a & 63); });
  binary<U64, U32, I64>("v_ashrrev_i64", [](uint32_t a, int64_t b) { return (uint64_t)(b >> (a & 63)); });
  binary<U32, U32, U32>("v_and_b32", [](uint32_t a, uint32_t b) { return a & b; });
  binary<U32, U32, U32>("v_or_b32", [](uint32_t a, uint32_t b) { return a | b; });
  binary<U32, U32, U32>("v_xor_b32", [](uint32_t a, uint32_t b) { return a ^ b; });
  binary<U32, U32, U32>("v_xnor_b32", [](uint32_t a, uint32_t b) { return ~(a ^ b); });
  unary<U32, U32>("v_not_b32", [](uint32_t a) { return ~a; });
  unary<U32, U32>("v_bfrev_b32", [](uint32_t a) {
    uint32_t r = 0;
    for (int i = 0; i < 32; i++) r |= (a >> i & 1) << (31 - i);
    return r;
  });
  unary<U32, U32>("v_ffbh_u32", [](uint32_t a) { return a ? (uint32_t)__builtin_clz(a) : ~0u; });
  unary<U32, U32>("v_ffbl_b32", [](uint32_t a) { return a ? (uint32_t)__builtin_ctz(a) : ~0u; });
  unary<U32, U32>("v_ffbh_i32", [](uint32_t a) {
    uint32_t x = (int32_t)a < 0 ? ~a : a;
    return x ? (uint32_t)__builtin_clz(x) : ~0u;
  });
  ternary<U32, U32, U32, U32>("v_bfe_u32", [](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t o = b & 31, n = c & 31;
    return n ? (uint32_t)(a >> o) & ((1u << n) - 1) : 0u;
  });
  ternary<U32, I32, U32, U32>("v_bfe_i32", [](int32_t a, uint32_t b, uint32_t c) {
    uint32_t o = b & 31, n = c & 31;
    if (!n) return 0u;
    if (o + n >= 32) return (uint32_t)(a >> o);
    return (uint32_t)((int32_t)((uint32_t)a << (32 - o - n)) >> (32 - n));
  });
  ternary<U32, U32, U32, U32>("v_bfi_b32",
                              [](uint32_t a, uint32_t b, uint32_t c) { return (a & b) | (~a & c); });
  binary<U32, U32, U32>("v_bfm_b32",
                        [](uint32_t a, uint32_t b) { return ((1u << (a & 31)) - 1) << (b & 31); });
  binary<U32, U32, U32>("v_bcnt_u32_b32", [](uint32_t a, uint32_t b) { return __builtin_popcount(a) + b; });
  ternary<U32, U32, U32, U32>("v_alignbit_b32", [](uint32_t a, uint32_t b, uint32_t c) {
    return (uint32_t)(((uint64_t)a << 32 | b) >> (c & 31));
  });
}

void add_word_bits() {
  ternary<U32, U32, U32, U32>("v_alignbyte_b32", [](uint32_t a, uint32_t b, uint32_t c) {
    return (uint32_t)(((uint64_t)a << 32 | b) >> (8 * (c & 3)));
  });
  ternary<U32, U32, U32, U32>("v_perm_b32", [](uint32_t a, uint32_t b, uint32_t c) {
    uint64_t d = (uint64_t)a << 32 | b;
    uint32_t r = 0;
    for (int i = 0; i < 4; i++) {
      uint32_t s = c >> (8 * i) & 255, x;
      if (s >= 13)
        x = 255;
      else if (s == 12)
        x = 0;
      else if (s >= 8)
        x = (d >> (16 * (s - 8) + 15) & 1) ? 255 : 0;
      else
        x = d >> (8 * s) & 255;
      r |= x << (8 * i);
    }
    return r;
  });
  ternary<U32, U32, U32, U32>("v_add3_u32", [](uint32_t a, uint32_t b, uint32_t c) { return a + b + c; });
  ternary<U32, U32, U32, U32>("v_lshl_add_u32",
                              [](uint32_t a, uint32_t b, uint32_t c) { return (a << (b & 31)) + c; });
  ternary<U32, U32, U32, U32>("v_add_lshl_u32",
                              [](uint32_t a, uint32_t b, uint32_t c) { return (a + b) << (c & 31); });
  ternary<U32, U32, U32, U32>("v_lshl_or_b32",
                              [](uint32_t a, uint32_t b, uint32_t c) { return (a << (b & 31)) | c; });
  ternary<U32, U32, U32, U32>("v_and_or_b32", [](uint32_t a, uint32_t b, uint32_t c) { return (a & b) | c; });
  ternary<U32, U32, U32, U32>("v_or3_b32", [](uint32_t a, uint32_t b, uint32_t c) { return a | b | c; });
  ternary<U32, U32, U32, U32>("v_xad_u32", [](uint32_t a, uint32_t b, uint32_t c) { return (a ^ b) + c; });
  ternary<U64, U64, U32, U64>("v_lshl_add_u64",
                              [](uint64_t a, uint32_t b, uint64_t c) { return (a << (b & 7)) + c; });
  ternary<U32, U32, U32, U32>("v_sad_u8", [](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r = c;
    for (int i = 0; i < 4; i++) {
      int x = a >> 8 * i & 255, y = b >> 8 * i & 255;
      r += std::abs(x - y);
    }
    return r;
  });
  ternary<U32, U32, U32, U32>("v_sad_u16", [](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r = c;
    for (int i = 0; i < 2; i++) {
      int x = a >> 16 * i & 65535, y = b >> 16 * i & 65535;
      r += std::abs(x - y);
    }
    return r;
  });
  ternary<U32, U32, U32, U32>("v_sad_u32",
                              [](uint32_t a, uint32_t b, uint32_t c) { return (a > b ? a - b : b - a) + c; });
}

void add_word_sums() {
  ternary<U32, U32, U32, U32>("v_lerp_u8", [](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r = 0;
    for (int i = 0; i < 32; i += 8) r |= (((a >> i & 255) + (b >> i & 255) + (c >> i & 1)) >> 1 & 255) << i;
    return r;
  });
}

void add_halves() {
  binary<U16, U16, U16>("v_add_u16", [](uint16_t a, uint16_t b) { return (int64_t)a + b; });
  binary<U16, U16, U16>("v_sub_u16", [](uint16_t a, uint16_t b) { return (int64_t)a - b; });
  binary<U16, U16, U16>("v_subrev_u16", [](uint16_t a, uint16_t b) { return (int64_t)b - a; });
  binary<U16, U16, U16>("v_mul_lo_u16", [](uint16_t a, uint16_t b) { return (uint16_t)((uint32_t)a * b); });
  binary<I16, I16, I16>("v_add_i16", [](int16_t a, int16_t b) { return (int64_t)a + b; });
  binary<I16, I16, I16>("v_sub_i16", [](int16_t a, int16_t b) { return (int64_t)a - b; });
  binary<U16, U16, U16>("v_lshlrev_b16", [](uint16_t a, uint16_t b) { return (uint16_t)(b << (a & 15)); });
  binary<U16, U16, U16>("v_lshrrev_b16", [](uint16_t a, uint16_t b) { return (uint16_t)(b >> (a & 15)); });
  binary<I16, U16, I16>("v_ashrrev_i16", [](uint16_t a, int16_t b) { return (int16_t)(b >> (a & 15)); });
  binary<U16, U16, U16>("v_max_u16", [](uint16_t a, uint16_t b) { return std::max(a, b); });
  binary<U16, U16, U16>("v_min_u16", [](uint16_t a, uint16_t b) { return std::min(a, b); });
  binary<I16, I16, I16>("v_max_i16", [](int16_t a, int16_t b) { return std::max(a, b); });
  binary<I16, I16, I16>("v_min_i16", [](int16_t a, int16_t b) { return std::min(a, b); });
  ternary<U16, U16, U16, U16>(
      "v_mad_u16", [](uint16_t a, uint16_t b, uint16_t c) { return (int64_t)((uint64_t)a * b + c); });
  ternary<I16, I16, I16, I16>("v_mad_i16",
                              [](int16_t a, int16_t b, int16_t c) { return (int64_t)a * b + c; });
  ternary<U16, U16, U16, U16>(
      "v_mad_legacy_u16", [](uint16_t a, uint16_t b, uint16_t c) { return (int64_t)((uint64_t)a * b + c); });
  ternary<I16, I16, I16, I16>("v_mad_legacy_i16",
                              [](int16_t a, int16_t b, int16_t c) { return (int64_t)a * b + c; });
  ternary<F16D, F16D, F16D, F16D>("v_fma_legacy_f16",
                                  [](double a, double b, double c) { return fma_rounded_to_odd(a, b, c); });
  ternary<F16, F16, F16, F16>(
      "v_mad_legacy_f16", [](float a, float b, float c) { return half_to_float(float_to_half(a * b)) + c; });
}

void add_dots() {
  accumulating<F32, HalfPair, HalfPair>("v_dot2c_f32_f16", [](uint32_t a, uint32_t b, float c) {
    return std::fma(high_half(a), high_half(b), std::fma(low_half(a), low_half(b), c));
  });
  accumulating<I32, U32, U32>("v_dot4c_i32_i8", [](uint32_t a, uint32_t b, int32_t c) {
    int64_t r = c;
    for (int i = 0; i < 32; i += 8) r += (int32_t)(int8_t)(a >> i) * (int8_t)(b >> i);
    return r;
  });
}

}  // namespace

void add_integer_operations() {
  add_moves();
  add_word_arithmetic();
  add_word_order();
  add_word_bits();
  add_word_sums();
  add_halves();
  add_dots();
}

}  // namespace tilegen::amdemu
