// Packed arithmetic (VOP3P), mixed precision, dot products, 8-bit floats.
#include "vector_functions.h"

namespace tilegen::amdemu {

namespace {

struct Half2 {
  const uint32_t* p;
  int stride;
  bool neglo, neghi, sello, selhi;
};
// packed 16-bit operand i (instruction operand index oi)
template <bool FL>
Half2 packed_source(Wave& w, const Instruction& in, int oi, int si, uint32_t* t, bool dflt_hi = true) {
  const Operand& o = in.operands[oi];
  Half2 h;
  h.sello = in.op_sel >> si & 1;
  h.selhi = in.has_op_sel_hi ? in.op_sel_hi >> si & 1 : dflt_hi;
  h.neglo = FL && (in.neg_lo >> si & 1);
  h.neghi = FL && (in.neg_hi >> si & 1);
  if (o.kind == OperandKind::vector) {
    int r = vector_register(w, o, si);
    if (w.machine->report_unwritten) {
      uint64_t u = ~w.written[r] & w.exec();
      if (u) unwritten_read(w, in, r, u);
    }
    h.p = w.vectors + r * 64;
    h.stride = 1;
    return h;
  }
  uint32_t x;
  // Of integers it is the float's word, whose upper half op_sel takes: 4.0 is 0x40800000 (LLVM,
  // isInlinableLiteralV2I16).
  if (o.kind == OperandKind::immediate && o.is_float)
    x = FL ? double_to_half(o.real) : std::bit_cast<uint32_t>(static_cast<float>(o.real));
  else
    x = (uint32_t)scalar_value<U32>(w, in, o);
  t[0] = x;
  h.p = t;
  h.stride = 0;
  return h;
}
uint16_t half_at(const Half2& h, int l, bool hi) {
  uint32_t x = h.p[l * h.stride];
  uint16_t v = (hi ? h.selhi : h.sello) ? (uint16_t)(x >> 16) : (uint16_t)x;
  if (hi ? h.neghi : h.neglo) v ^= 0x8000;
  return v;
}
template <class T, int N, class F>
void packed(Wave& w, const Instruction& in) {
  F f;
  uint32_t t[3][1];
  Half2 s[3];
  uint64_t m = w.exec();
  bool z = flushes_input<T>(w), zo = flushes_output<T>(w);
  for (int i = 0; i < N; i++) s[i] = packed_source<T::kFloat>(w, in, 1 + i, i, t[i]);
  uint32_t* d = destination<U32>(w, in, m);
  auto g = [&](int i, int l, bool hi) {
    uint32_t x = half_at(s[i], l, hi);
    Source q{&x, &x, 0};
    return element<T>(q, 0, z);
  };
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    uint32_t r = 0;
    for (int h = 0; h < 2; h++) {
      uint64_t y;
      if constexpr (N == 2)
        y = encoded<T>(f(g(0, l, h), g(1, l, h)), in, zo);
      else
        y = encoded<T>(f(g(0, l, h), g(1, l, h), g(2, l, h)), in, zo);
      r |= (uint32_t)(uint16_t)y << (16 * h);
    }
    d[l] = r;
  }
}
template <class T, int N, class F>
void packed_operation(const char* n, F) {
  add_operation(n, &packed<T, N, F>);
}
// packed f32
template <int N, class F>
void packed_f32(Wave& w, const Instruction& in) {
  F f;
  uint64_t m = w.exec();
  const uint32_t* p[3][2];
  int st[3];
  uint32_t t[3][2];
  bool z = flushes_input<F32>(w), zo = flushes_output<F32>(w);
  for (int i = 0; i < N; i++) {
    const Operand& o = in.operands[1 + i];
    bool sl = in.op_sel >> i & 1, sh = in.has_op_sel_hi ? in.op_sel_hi >> i & 1 : 1;
    const uint32_t *a, *b;
    if (o.kind == OperandKind::vector) {
      int r = vector_register(w, o, i);
      a = w.vectors + r * 64;
      b = o.registers > 1 ? a + 64 : a;
      st[i] = 1;
      if (w.machine->report_unwritten) {
        uint64_t u = ~w.written[r] & m;
        if (u && (!sl || !sh)) unwritten_read(w, in, r, u);
      }
    } else if (o.kind == OperandKind::scalar) {
      t[i][0] = w.scalars[o.first];
      t[i][1] = w.scalars[o.first + 1];
      a = &t[i][0];
      b = &t[i][1];
      st[i] = 0;
    } else {
      t[i][0] = (uint32_t)scalar_value<U32>(w, in, o);
      if (sl || sh) {
        if (t[i][0]) fail("packed f32 immediate with op_sel_hi: %s", in.text.c_str());
      }
      t[i][1] = 0;
      a = &t[i][0];
      b = &t[i][1];
      st[i] = 0;
    }
    p[i][0] = sl ? b : a;
    p[i][1] = sh ? b : a;
  }
  uint32_t* d = destination<U64>(w, in, m);
  auto g = [&](int i, int l, int h) {
    uint32_t x = p[i][h][l * st[i]];
    if ((h ? in.neg_hi : in.neg_lo) >> i & 1) x ^= 0x80000000u;
    Source q{&x, &x, 0};
    return element<F32>(q, 0, z);
  };
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    uint32_t r[2];
    for (int h = 0; h < 2; h++) {
      if constexpr (N == 2)
        r[h] = (uint32_t)encoded<F32>(f(g(0, l, h), g(1, l, h)), in, zo);
      else
        r[h] = (uint32_t)encoded<F32>(f(g(0, l, h), g(1, l, h), g(2, l, h)), in, zo);
    }
    d[l] = r[0];
    d[64 + l] = r[1];
  }
}
template <int N, class F>
void packed_f32_operation(const char* n, F) {
  add_operation(n, &packed_f32<N, F>);
}
void v_pk_mov(Wave& w, const Instruction& in) {
  uint64_t m = w.exec();
  uint32_t r[2][64];
  for (int i = 0; i < 2; i++) {
    const Operand& o = in.operands[1 + i];
    bool s = in.op_sel >> i & 1;
    for (int l = 0; l < 64; l++)
      r[i][l] = o.kind == OperandKind::vector   ? w.vectors[(o.first + s) * 64 + l]
                : o.kind == OperandKind::scalar ? w.scalars[o.first + s]
                : s                             ? 0
                                                : (uint32_t)scalar_value<U32>(w, in, o);
  }
  uint32_t* d = destination<U64>(w, in, m);
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    d[l] = r[0][l];
    d[64 + l] = r[1][l];
  }
}
// v_fma_mix: DST 0 f32, 1 lo f16, 2 hi f16
template <int DST>
void v_mix(Wave& w, const Instruction& in) {
  SourceBuffer t[3];
  uint64_t m = w.exec();
  float v[3];
  Source s[3];
  bool h[3], hi[3];
  for (int i = 0; i < 3; i++) {
    const Operand& o = in.operands[1 + i];
    h[i] = in.has_op_sel_hi && (in.op_sel_hi >> i & 1);
    hi[i] = in.op_sel >> i & 1;
    if (o.kind == OperandKind::vector) {
      int r = vector_register(w, o, i);
      s[i] = {w.vectors + r * 64, nullptr, 1};
      if (w.machine->report_unwritten) {
        uint64_t u = ~w.written[r] & m;
        if (u) unwritten_read(w, in, r, u);
      }
    } else {
      uint64_t x = o.kind == OperandKind::immediate && h[i] ? scalar_value<F16>(w, in, o)
                                                            : scalar_value<U32>(w, in, o);
      t[i].lo[0] = (uint32_t)x;
      s[i] = {t[i].lo, nullptr, 0};
    }
  }
  uint32_t* d = destination<U32>(w, in, m);
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    for (int i = 0; i < 3; i++) {
      const Operand& o = in.operands[1 + i];
      uint32_t x = s[i].lo[l * s[i].stride];
      v[i] = h[i] ? half_to_float((uint16_t)(hi[i] ? x >> 16 : x)) : std::bit_cast<float>(x);
      if (o.abs || (in.neg_hi >> i & 1)) v[i] = std::fabs(v[i]);
      if (o.neg || (in.neg_lo >> i & 1)) v[i] = -v[i];
    }
    float r = std::fma(v[0], v[1], v[2]);
    if (in.clamp) r = !(r > 0) ? 0 : r > 1 ? 1 : r;
    if (DST == 0)
      d[l] = std::bit_cast<uint32_t>(r);
    else {
      double rr =
          fma_rounded_to_odd(v[0], v[1], v[2]);  // f32 products are exact in double; one rounding to f16
      if (in.clamp) rr = r;
      uint32_t x = double_to_half(rr);
      if (DST == 1)
        d[l] = (d[l] & 0xffff0000u) | x;
      else
        d[l] = (d[l] & 0xffffu) | x << 16;
    }
  }
}
// ---- dot products with accumulate
template <int KIND>
void v_dot(Wave& w, const Instruction& in) {
  SourceBuffer t0, t1, t2;
  uint64_t m = w.exec();
  Source a = source_of<U32>(w, in, 1, 0, t0), b = source_of<U32>(w, in, 2, 1, t1),
         c = source_of<U32>(w, in, 3, 2, t2);
  uint32_t* d = destination<U32>(w, in, m);
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    uint32_t x = a.lo[l * a.stride], y = b.lo[l * b.stride], z = c.lo[l * c.stride], r = 0;
    int64_t acc;
    auto sel = [&](uint32_t v, int i, int h) {
      bool s = h ? (in.has_op_sel_hi ? in.op_sel_hi >> i & 1 : 1) : (in.op_sel >> i & 1);
      return (uint16_t)(s ? v >> 16 : v);
    };
    switch (KIND) {
      case 0: {
        float f = std::bit_cast<float>(z);
        for (int h = 0; h < 2; h++) {
          float p = half_to_float(sel(x, 0, h)), s = half_to_float(sel(y, 1, h));
          if ((h ? in.neg_hi : in.neg_lo) & 1) p = -p;
          if ((h ? in.neg_hi : in.neg_lo) & 2) s = -s;
          f = std::fma(p, s, f);
        }
        r = std::bit_cast<uint32_t>(f);
        break;
      }
      case 1:
        acc = (int32_t)z;
        for (int h = 0; h < 2; h++) acc += (int32_t)(int16_t)sel(x, 0, h) * (int16_t)sel(y, 1, h);
        r = in.clamp ? (uint32_t)std::min<int64_t>(std::max<int64_t>(acc, INT32_MIN), INT32_MAX)
                     : (uint32_t)acc;
        break;
      case 2:
        acc = z;
        for (int h = 0; h < 2; h++) acc += (int64_t)((uint32_t)sel(x, 0, h) * sel(y, 1, h));
        r = in.clamp ? (uint32_t)std::min<int64_t>(acc, 0xffffffffll) : (uint32_t)acc;
        break;
      case 3:
        acc = (int32_t)z;
        for (int i = 0; i < 32; i += 8) acc += (int32_t)(int8_t)(x >> i) * (int8_t)(y >> i);
        r = in.clamp ? (uint32_t)std::min<int64_t>(std::max<int64_t>(acc, INT32_MIN), INT32_MAX)
                     : (uint32_t)acc;
        break;
      case 4:
        acc = z;
        for (int i = 0; i < 32; i += 8) acc += (int64_t)(x >> i & 255) * (y >> i & 255);
        r = in.clamp ? (uint32_t)std::min<int64_t>(acc, 0xffffffffll) : (uint32_t)acc;
        break;
      case 5:
        acc = (int32_t)z;
        for (int i = 0; i < 32; i += 4)
          acc += ((int32_t)(x << (28 - i)) >> 28) * ((int32_t)(y << (28 - i)) >> 28);
        r = (uint32_t)acc;
        break;
      case 6:
        acc = z;
        for (int i = 0; i < 32; i += 4) acc += (int64_t)(x >> i & 15) * (y >> i & 15);
        r = (uint32_t)acc;
        break;
    }
    d[l] = r;
  }
}
// ---- fp8
template <bool BF8>
void v_cvt_pk_fp8(Wave& w, const Instruction& in) {
  SourceBuffer t0, t1;
  uint64_t m = w.exec();
  Source a = source_of<F32>(w, in, 1, 0, t0), b = source_of<F32>(w, in, 2, 1, t1);
  uint32_t* d = destination<U32>(w, in, m);
  bool sat = w.mode >> 23 & 1, hi = in.op_sel & 12;
  if (in.op_sel & 3) fail("op_sel on fp8 sources: %s", in.text.c_str());
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    uint32_t x = float_to_fp8(std::bit_cast<float>(a.lo[l * a.stride]), BF8, {sat, false, 0}) |
                 float_to_fp8(std::bit_cast<float>(b.lo[l * b.stride]), BF8, {sat, false, 0}) << 8;
    d[l] = hi ? (d[l] & 0xffff) | x << 16 : (d[l] & 0xffff0000u) | x;
  }
}
template <bool BF8>
void v_cvt_sr_fp8(Wave& w, const Instruction& in) {
  SourceBuffer t0, t1;
  uint64_t m = w.exec();
  Source a = source_of<F32>(w, in, 1, 0, t0), b = source_of<U32>(w, in, 2, 1, t1);
  uint32_t* d = destination<U32>(w, in, m);
  bool sat = w.mode >> 23 & 1;
  int sh = 8 * ((in.op_sel >> 2 & 1) | (in.op_sel >> 3 & 1) << 1);
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    uint32_t x = float_to_fp8(std::bit_cast<float>(a.lo[l * a.stride]), BF8, {sat, true, b.lo[l * b.stride]});
    d[l] = (d[l] & ~(0xffu << sh)) | x << sh;
  }
}
template <bool BF8>
void v_cvt_pk_f32_fp8(Wave& w, const Instruction& in) {
  SourceBuffer t0;
  uint64_t m = written_lanes(w, in);
  Source a = source_of<U32>(w, in, 1, 0, t0);
  uint32_t* d = destination<U64>(w, in, m);
  int sh = !in.sdwa && (in.op_sel & 1) ? 16 : 0;
  uint32_t r[2][64];
  for (int l = 0; l < 64; l++) {
    uint32_t x = a.lo[l * a.stride] >> sh;
    r[0][l] = std::bit_cast<uint32_t>(fp8_to_float((uint8_t)x, BF8));
    r[1][l] = std::bit_cast<uint32_t>(fp8_to_float((uint8_t)(x >> 8), BF8));
  }
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    d[l] = r[0][l];
    d[64 + l] = r[1][l];
  }
}
}  // namespace

void add_packed_operations() {
  auto mx = [](float a, float b) {
    if (a != a) return b;
    if (b != b) return a;
    return a > b || (a == b && !std::signbit(a)) ? a : b;
  };
  auto mnf = [](float a, float b) {
    if (a != a) return b;
    if (b != b) return a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
  };
  packed_operation<F16, 2>("v_pk_add_f16", [](float a, float b) { return a + b; });
  packed_operation<F16, 2>("v_pk_mul_f16", [](float a, float b) { return a * b; });
  packed_operation<F16, 2>("v_pk_max_f16", mx);
  packed_operation<F16, 2>("v_pk_min_f16", mnf);
  packed_operation<F16D, 3>("v_pk_fma_f16",
                            [](double a, double b, double c) { return fma_rounded_to_odd(a, b, c); });
  packed_operation<I16, 2>("v_pk_add_i16", [](int16_t a, int16_t b) { return (int64_t)a + b; });
  packed_operation<I16, 2>("v_pk_sub_i16", [](int16_t a, int16_t b) { return (int64_t)a - b; });
  packed_operation<U16, 2>("v_pk_add_u16", [](uint16_t a, uint16_t b) { return (int64_t)a + b; });
  packed_operation<U16, 2>("v_pk_sub_u16", [](uint16_t a, uint16_t b) { return (int64_t)a - b; });
  packed_operation<U16, 2>("v_pk_mul_lo_u16",
                           [](uint16_t a, uint16_t b) { return (uint16_t)((uint32_t)a * b); });
  packed_operation<U16, 3>("v_pk_mad_u16",
                           [](uint16_t a, uint16_t b, uint16_t c) { return (int64_t)((uint64_t)a * b + c); });
  packed_operation<I16, 3>("v_pk_mad_i16",
                           [](int16_t a, int16_t b, int16_t c) { return (int64_t)a * b + c; });
  packed_operation<I16, 2>("v_pk_max_i16", [](int16_t a, int16_t b) { return std::max(a, b); });
  packed_operation<I16, 2>("v_pk_min_i16", [](int16_t a, int16_t b) { return std::min(a, b); });
  packed_operation<U16, 2>("v_pk_max_u16", [](uint16_t a, uint16_t b) { return std::max(a, b); });
  packed_operation<U16, 2>("v_pk_min_u16", [](uint16_t a, uint16_t b) { return std::min(a, b); });
  packed_operation<U16, 2>("v_pk_lshlrev_b16",
                           [](uint16_t a, uint16_t b) { return (uint16_t)(b << (a & 15)); });
  packed_operation<U16, 2>("v_pk_lshrrev_b16",
                           [](uint16_t a, uint16_t b) { return (uint16_t)(b >> (a & 15)); });
  packed_operation<I16, 2>("v_pk_ashrrev_i16", [](int16_t a, int16_t b) { return (int16_t)(b >> (a & 15)); });
  packed_f32_operation<2>("v_pk_add_f32", [](float a, float b) { return a + b; });
  packed_f32_operation<2>("v_pk_mul_f32", [](float a, float b) { return a * b; });
  packed_f32_operation<3>("v_pk_fma_f32", [](float a, float b, float c) { return std::fma(a, b, c); });
  add_operation("v_pk_mov_b32", v_pk_mov);
  for (const char* p : {"v_fma_mix", "v_mad_mix"}) {
    std::string s = p;
    add_operation(s + "_f32", v_mix<0>);
    add_operation(s + "lo_f16", v_mix<1>);
    add_operation(s + "hi_f16", v_mix<2>);
  }
  add_operation("v_dot2_f32_f16", v_dot<0>);
  add_operation("v_dot2_i32_i16", v_dot<1>);
  add_operation("v_dot2_u32_u16", v_dot<2>);
  add_operation("v_dot4_i32_i8", v_dot<3>);
  add_operation("v_dot4_u32_u8", v_dot<4>);
  add_operation("v_dot8_i32_i4", v_dot<5>);
  add_operation("v_dot8_u32_u4", v_dot<6>);
  add_operation("v_cvt_pk_fp8_f32", v_cvt_pk_fp8<false>);
  add_operation("v_cvt_pk_bf8_f32", v_cvt_pk_fp8<true>);
  add_operation("v_cvt_sr_fp8_f32", v_cvt_sr_fp8<false>);
  add_operation("v_cvt_sr_bf8_f32", v_cvt_sr_fp8<true>);
  add_operation("v_cvt_pk_f32_fp8", v_cvt_pk_f32_fp8<false>);
  add_operation("v_cvt_pk_f32_bf8", v_cvt_pk_f32_fp8<true>);
  unary<F32, U32>("v_cvt_f32_fp8", [](uint32_t a) { return fp8_to_float((uint8_t)a, false); });
  unary<F32, U32>("v_cvt_f32_bf8", [](uint32_t a) { return fp8_to_float((uint8_t)a, true); });
}

}  // namespace tilegen::amdemu
