// Operands of vector instructions, lane by lane, and instructions made of a function of one lane.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "machine.h"

namespace tilegen::amdemu {

struct SourceBuffer {
  uint32_t lo[64], hi[64];
};
struct Source {
  const uint32_t *lo, *hi;
  int stride;
};

struct F32 {
  using Value = float;
  static constexpr int kBits = 32;
  static constexpr bool kFloat = true;
  static Value load(uint32_t a, uint32_t) { return std::bit_cast<float>(a); }
  static uint64_t bits(Value v) { return std::bit_cast<uint32_t>(v); }
};
struct F64 {
  using Value = double;
  static constexpr int kBits = 64;
  static constexpr bool kFloat = true;
  static Value load(uint32_t a, uint32_t b) { return std::bit_cast<double>(a | (uint64_t)b << 32); }
  static uint64_t bits(Value v) { return std::bit_cast<uint64_t>(v); }
};
struct F16 {
  using Value = float;
  static constexpr int kBits = 16;
  static constexpr bool kFloat = true;
  static Value load(uint32_t a, uint32_t) { return half_to_float((uint16_t)a); }
  static uint64_t bits(Value v) { return float_to_half(v); }
};
struct F16D {
  using Value = double;
  static constexpr int kBits = 16;
  static constexpr bool kFloat = true;
  static Value load(uint32_t a, uint32_t) { return half_to_float((uint16_t)a); }
  static uint64_t bits(Value v) { return double_to_half(v); }
};
// Integers. Functions may return a wider value: with the clamp bit it saturates.
template <class T>
struct Integer {
  using Value = T;
  static constexpr int kBits = 8 * sizeof(T);
  static constexpr bool kFloat = false;
  static Value load(uint32_t a, uint32_t b) { return static_cast<T>(a | static_cast<uint64_t>(b) << 32); }
};
using U16 = Integer<uint16_t>;
using I16 = Integer<int16_t>;
using U32 = Integer<uint32_t>;
using I32 = Integer<int32_t>;
using U64 = Integer<uint64_t>;
using I64 = Integer<int64_t>;

// Two f16 in a word, of which an inline constant is the lower: 1.0 is 0x3c00 (LLVM, isInlinableLiteralV2F16).
struct HalfPair : U32 {
  static constexpr bool kHalves = true;
};

template <class T>
inline uint64_t scalar_value(Wave& w, const Instruction& in, const Operand& o) {
  switch (o.kind) {
    case OperandKind::scalar:
      return T::kBits == 64 ? w.pair(o.first) : w.scalars[o.first];
    case OperandKind::immediate:
      if (o.is_float) {
        if constexpr (requires { T::kHalves; }) return double_to_half(o.real);
        if (T::kBits == 16) return double_to_half(o.real);
        if (T::kBits == 32) return std::bit_cast<uint32_t>((float)o.real);
        return std::bit_cast<uint64_t>(o.real);
      }
      if (T::kBits == 64) {
        if (std::is_same<T, F64>::value) return o.is_literal ? (uint64_t)o.value << 32 : (uint64_t)o.value;
        // A literal of a 64-bit operand is zero-extended, as LLVM assumes for s_mov_b64, or sign-extended
        // where the operand is signed.
        if (std::is_same<T, I64>::value)
          return o.is_literal ? (uint64_t)(int64_t)(int32_t)o.value : (uint64_t)o.value;
        return o.is_literal ? (uint64_t)(uint32_t)o.value : (uint64_t)o.value;
      }
      return (uint32_t)o.value;
    case OperandKind::scc:
      return w.scc;
    case OperandKind::vccz:
      return w.vcc() == 0;
    case OperandKind::execz:
      return w.exec() == 0;
    case OperandKind::aperture:
      return (uint64_t)o.value;
    default:
      fail("bad source operand in: %s", in.text.c_str());
  }
}
inline int vector_register(Wave& w, const Operand& o, int gbit) {
  int r = o.first;
  if (__builtin_expect(w.indexing, 0) && r < 256 && (w.index_mode >> gbit & 1)) {
    r += w.scalars[kM0] & 0xff;
    if (r >= 256) fail("gpr index out of range");
  }
  return r;
}
inline uint32_t selected(uint32_t x, int sel, bool sx) {
  switch (sel) {
    case 0:
    case 1:
    case 2:
    case 3:
      x = x >> (8 * sel) & 0xff;
      return sx ? (uint32_t)(int32_t)(int8_t)x : x;
    case 4:
    case 5:
      x = x >> (16 * (sel - 4)) & 0xffff;
      return sx ? (uint32_t)(int32_t)(int16_t)x : x;
  }
  return x;
}
template <class T>
inline Source source_of(Wave& w, const Instruction& in, int oi, int si, SourceBuffer& t) {
  const Operand& o = in.operands[oi];
  constexpr bool W2 = T::kBits == 64;
  auto fix = [&](uint32_t& lo, uint32_t& hi, bool imm) {
    if (in.sdwa && si < 2)
      lo = selected(lo, in.src_select[si], o.sign_extend);
    else if (T::kBits == 16 && !imm && (in.op_sel >> si & 1))
      lo >>= 16;
    if (o.abs || o.neg) {
      uint32_t& x = W2 ? hi : lo;
      uint32_t b = T::kBits == 16 ? 0x8000u : 0x80000000u;
      if (o.abs) x &= ~b;
      if (o.neg) x ^= b;
    }
  };
  if (o.kind == OperandKind::vector) {
    int r = vector_register(w, o, si);
    const uint32_t* p = w.vectors + r * 64;
    if (__builtin_expect(w.machine->report_unwritten, 0)) {
      uint64_t m = w.exec(), u = ~w.written[r] | (W2 ? ~w.written[r + 1] : 0);
      if (!in.dpp && (u & m)) unwritten_read(w, in, r, u & m);
    }
    if (!in.source_modified) return {p, W2 ? p + 64 : p, 1};
    for (int l = 0; l < 64; l++) {
      uint32_t lo, hi = 0;
      if (in.dpp && si == 0) {
        int s = in.lane_source[l];
        bool ok = s >= 0 && (w.exec() >> s & 1);
        lo = ok ? p[s] : 0;
        if (W2) hi = ok ? p[64 + s] : 0;
      } else {
        lo = p[l];
        if (W2) hi = p[64 + l];
      }
      fix(lo, hi, false);
      t.lo[l] = lo;
      if (W2) t.hi[l] = hi;
    }
    return {t.lo, t.hi, 1};
  }
  uint64_t x = scalar_value<T>(w, in, o);
  t.lo[0] = (uint32_t)x;
  t.hi[0] = (uint32_t)(x >> 32);
  if (in.source_modified) fix(t.lo[0], t.hi[0], o.kind == OperandKind::immediate);
  return {t.lo, t.hi, 0};
}
inline uint64_t dpp_mask(Wave& w, const Instruction& in, uint64_t m) {
  uint64_t r = 0, ex = w.exec();
  for (int l = 0; l < 64; l++) {
    if (!(m >> l & 1)) continue;
    if (!(in.row_mask >> (l / 16) & 1) || !(in.bank_mask >> (l % 16 / 4) & 1)) continue;
    int s = in.lane_source[l];
    bool ok = s >= 0 && (ex >> s & 1);
    if (!ok && !in.bound_ctrl) continue;
    r |= 1ull << l;
  }
  return r;
}
inline uint64_t written_lanes(Wave& w, const Instruction& in) {
  return in.dpp ? dpp_mask(w, in, w.exec()) : w.exec();
}
template <class T>
inline bool flushes_input(Wave& w) {
  return T::kFloat && (T::kBits == 32 ? !(w.mode & 0x10) : !(w.mode & 0x40));
}
template <class T>
inline bool flushes_output(Wave& w) {
  return T::kFloat && (T::kBits == 32 ? !(w.mode & 0x20) : !(w.mode & 0x80));
}
template <class T>
inline typename T::Value element(const Source& s, int l, bool z) {
  typename T::Value v = T::load(s.lo[l * s.stride], T::kBits == 64 ? s.hi[l * s.stride] : 0);
  if constexpr (T::kFloat)
    if (__builtin_expect(z, 0)) {
      double lim = T::kBits == 32 ? 0x1p-126 : T::kBits == 64 ? 0x1p-1022 : 0x1p-14;
      if (v != 0 && std::fabs((double)v) < lim) v = std::copysign((typename T::Value)0, v);
    }
  return v;
}
template <class T, class R>
inline uint64_t encoded(R r, const Instruction& in, bool z) {
  if constexpr (T::kFloat) {
    typename T::Value v = (typename T::Value)r;
    if (in.omod != 1) v *= (typename T::Value)in.omod;
    if (in.clamp) v = !(v > 0) ? 0 : v > 1 ? 1 : v;
    if (__builtin_expect(z, 0)) {
      double lim = T::kBits == 32 ? 0x1p-126 : T::kBits == 64 ? 0x1p-1022 : 0x1p-14;
      if (v != 0 && std::fabs((double)v) < lim) v = std::copysign((typename T::Value)0, v);
    }
    return T::bits(v);
  } else {
    if (in.clamp) {
      if constexpr (T::kBits < 64) {
        int64_t lo = std::is_signed<typename T::Value>::value ? -(1ll << (T::kBits - 1)) : 0;
        int64_t hi =
            std::is_signed<typename T::Value>::value ? (1ll << (T::kBits - 1)) - 1 : (1ll << T::kBits) - 1;
        int64_t x = (int64_t)r;
        r = (R)(x < lo ? lo : x > hi ? hi : x);
        return T::kBits == 16 ? (uint16_t)(int64_t)r : (uint32_t)(int64_t)r;
      }
    }
    return T::kBits == 16 ? (uint64_t)(uint16_t)r : T::kBits == 32 ? (uint64_t)(uint32_t)r : (uint64_t)r;
  }
}
// store one lane result honouring 16-bit rules / sdwa / op_sel
template <class T>
inline void store_lane(const Instruction& in, uint32_t* d, int l, uint64_t x) {
  if constexpr (T::kBits == 64) {
    d[l] = (uint32_t)x;
    d[64 + l] = (uint32_t)(x >> 32);
    return;
  }
  if (__builtin_expect(in.result_modified, 0)) {
    uint32_t old = d[l], v = (uint32_t)x;
    if (in.sdwa) {
      if (in.dst_select == 6) {
        d[l] = v;
        return;
      }
      int sh = in.dst_select < 4 ? 8 * in.dst_select : 16 * (in.dst_select - 4);
      uint32_t m = (in.dst_select < 4 ? 0xffu : 0xffffu);
      v &= m;
      if (in.dst_unused == 2)
        d[l] = (old & ~(m << sh)) | v << sh;
      else if (in.dst_unused == 0)
        d[l] = v << sh;
      else {
        uint32_t sgn = (v & ((m >> 1) + 1)) ? 0xffffffffu : 0;
        uint32_t top = sh + (in.dst_select < 4 ? 8 : 16);
        d[l] = v << sh | (top < 32 ? sgn << top : 0);
      }
      return;
    }
    if (T::kBits == 16) {
      if (in.op_sel & 8)
        d[l] = (old & 0xffff) | v << 16;
      else
        d[l] = in.preserve ? (old & 0xffff0000u) | (v & 0xffff) : v;
      return;
    }
    d[l] = v;
    return;
  }
  d[l] = (uint32_t)x;
}
template <class T>
inline uint32_t* destination(Wave& w, const Instruction& in, uint64_t m, int oi = 0) {
  if (in.operands[oi].kind != OperandKind::vector) fail("VGPR destination expected: %s", in.text.c_str());
  int r = vector_register(w, in.operands[oi], 3);
  if (__builtin_expect(w.machine->report_unwritten, 0)) {
    w.written[r] |= m;
    if (T::kBits == 64) w.written[r + 1] |= m;
  }
  return w.vectors + r * 64;
}
template <class D, class A, class B, class C, int N, class F>
void each_lane(Wave& w, const Instruction& in) {
  F f;
  SourceBuffer t0, t1, t2;
  Source a{}, b{}, c{};
  uint64_t m = written_lanes(w, in);
  a = source_of<A>(w, in, 1, 0, t0);
  if (N > 1) b = source_of<B>(w, in, 2, 1, t1);
  if (N > 2) c = source_of<C>(w, in, 3, 2, t2);
  uint32_t* d = destination<D>(w, in, m);
  bool za = flushes_input<A>(w), zb = flushes_input<B>(w), zc = flushes_input<C>(w),
       zd = flushes_output<D>(w);
  auto lane = [&](int l) __attribute__((always_inline)) {
    if constexpr (N == 1)
      store_lane<D>(in, d, l, encoded<D>(f(element<A>(a, l, za)), in, zd));
    else if constexpr (N == 2)
      store_lane<D>(in, d, l, encoded<D>(f(element<A>(a, l, za), element<B>(b, l, zb)), in, zd));
    else
      store_lane<D>(in, d, l,
                    encoded<D>(f(element<A>(a, l, za), element<B>(b, l, zb), element<C>(c, l, zc)), in, zd));
  };
  if (m == ~0ull)
    for (int l = 0; l < 64; l++) lane(l);
  else
    for (uint64_t k = m; k; k &= k - 1) lane(__builtin_ctzll(k));
}
// accumulate form: D = f(S0, S1, D)
template <class D, class A, class B, class F>
void accumulate(Wave& w, const Instruction& in) {
  F f;
  SourceBuffer t0, t1;
  uint64_t m = written_lanes(w, in);
  Source a = source_of<A>(w, in, 1, 0, t0), b = source_of<B>(w, in, 2, 1, t1);
  if (w.machine->report_unwritten) {
    uint64_t u = ~w.written[in.operands[0].first] & m;
    if (u) unwritten_read(w, in, in.operands[0].first, u);
  }
  uint32_t* d = destination<D>(w, in, m);
  Source c{d, D::kBits == 64 ? d + 64 : d, 1};
  bool za = flushes_input<A>(w), zb = flushes_input<B>(w), zd = flushes_output<D>(w),
       zc = flushes_input<D>(w);
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    store_lane<D>(in, d, l,
                  encoded<D>(f(element<A>(a, l, za), element<B>(b, l, zb), element<D>(c, l, zc)), in, zd));
  }
}
template <class D, class A, class F>
void unary(const char* n, F) {
  add_operation(n, &each_lane<D, A, U32, U32, 1, F>);
}
template <class D, class A, class B, class F>
void binary(const char* n, F) {
  add_operation(n, &each_lane<D, A, B, U32, 2, F>);
}
template <class D, class A, class B, class C, class F>
void ternary(const char* n, F) {
  add_operation(n, &each_lane<D, A, B, C, 3, F>);
}
template <class D, class A, class B, class F>
void accumulating(const char* n, F) {
  add_operation(n, &accumulate<D, A, B, F>);
}

}  // namespace tilegen::amdemu
