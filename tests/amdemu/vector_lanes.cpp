// Vector compares, carries, selections, and what lanes do with each other.
#include "vector_functions.h"

namespace tilegen::amdemu {

namespace {

// ---- compares
template <class A, class F, int X>
void compare(Wave& w, const Instruction& in) {
  F f;
  SourceBuffer t0, t1;
  uint64_t m = w.exec(), r = 0;
  Source a = source_of<A>(w, in, 1, 0, t0), b = source_of<A>(w, in, 2, 1, t1);
  bool z = flushes_input<A>(w);
  if (m == ~0ull)
    for (int l = 0; l < 64; l++) r |= (uint64_t) !!f(element<A>(a, l, z), element<A>(b, l, z)) << l;
  else
    for (uint64_t k = m; k; k &= k - 1) {
      int l = __builtin_ctzll(k);
      r |= (uint64_t) !!f(element<A>(a, l, z), element<A>(b, l, z)) << l;
    }
  w.set_pair(in.operands[0].first, r);
  if (X) w.set_pair(kExec, r);
}
template <class A, class F>
void compares(const std::string& n, F) {
  add_operation("v_cmp_" + n, &compare<A, F, 0>);
  add_operation("v_cmpx_" + n, &compare<A, F, 1>);
}
template <class A>
void integer_compares(const std::string& s) {
  typedef typename A::Value V;
  compares<A>("f_" + s, [](V, V) { return false; });
  compares<A>("t_" + s, [](V, V) { return true; });
  compares<A>("lt_" + s, [](V a, V b) { return a < b; });
  compares<A>("eq_" + s, [](V a, V b) { return a == b; });
  compares<A>("le_" + s, [](V a, V b) { return a <= b; });
  compares<A>("gt_" + s, [](V a, V b) { return a > b; });
  compares<A>("ne_" + s, [](V a, V b) { return a != b; });
  compares<A>("ge_" + s, [](V a, V b) { return a >= b; });
}
template <class A>
void float_compares(const std::string& s) {
  typedef typename A::Value V;
  compares<A>("f_" + s, [](V, V) { return false; });
  compares<A>("tru_" + s, [](V, V) { return true; });
  compares<A>("lt_" + s, [](V a, V b) { return a < b; });
  compares<A>("eq_" + s, [](V a, V b) { return a == b; });
  compares<A>("le_" + s, [](V a, V b) { return a <= b; });
  compares<A>("gt_" + s, [](V a, V b) { return a > b; });
  compares<A>("lg_" + s, [](V a, V b) { return a < b || a > b; });
  compares<A>("ge_" + s, [](V a, V b) { return a >= b; });
  compares<A>("o_" + s, [](V a, V b) { return a == a && b == b; });
  compares<A>("u_" + s, [](V a, V b) { return !(a == a && b == b); });
  compares<A>("nge_" + s, [](V a, V b) { return !(a >= b); });
  compares<A>("nlg_" + s, [](V a, V b) { return !(a < b || a > b); });
  compares<A>("ngt_" + s, [](V a, V b) { return !(a > b); });
  compares<A>("nle_" + s, [](V a, V b) { return !(a <= b); });
  compares<A>("neq_" + s, [](V a, V b) { return !(a == b); });
  compares<A>("nlt_" + s, [](V a, V b) { return !(a < b); });
}
template <int BITS, int X>
void classify(Wave& w, const Instruction& in) {
  typedef
      typename std::conditional<BITS == 16, F16, typename std::conditional<BITS == 32, F32, F64>::type>::type
          A;
  SourceBuffer t0, t1;
  uint64_t r = 0;
  Source a = source_of<A>(w, in, 1, 0, t0), b = source_of<U32>(w, in, 2, 1, t1);
  for (uint64_t k = w.exec(); k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    uint64_t x = a.lo[l * a.stride];
    if (BITS == 64) x |= (uint64_t)a.hi[l * a.stride] << 32;
    if (BITS == 16) x &= 0xffff;
    constexpr int mb = BITS == 16 ? 10 : BITS == 32 ? 23 : 52, eb = BITS - 1 - mb;
    uint64_t e = x >> mb & ((1ull << eb) - 1), mant = x & ((1ull << mb) - 1);
    bool s = x >> (BITS - 1) & 1;
    int c;
    if (e == (1ull << eb) - 1)
      c = mant ? (mant >> (mb - 1) ? 1 : 0) : s ? 2 : 9;
    else if (e == 0)
      c = mant ? (s ? 4 : 7) : (s ? 5 : 6);
    else
      c = s ? 3 : 8;
    r |= (uint64_t)(b.lo[l * b.stride] >> c & 1) << l;
  }
  w.set_pair(in.operands[0].first, r);
  if (X) w.set_pair(kExec, r);
}
// ---- carries: OP 0 add 1 sub 2 subrev; C carry-in
template <int OP, int C>
void with_carry(Wave& w, const Instruction& in) {
  SourceBuffer t0, t1;
  uint64_t m = written_lanes(w, in), cin = C ? w.pair(in.operands[4].first) : 0, co = 0;
  Source a = source_of<U32>(w, in, 2, 0, t0), b = source_of<U32>(w, in, 3, 1, t1);
  uint32_t* d = destination<U32>(w, in, m);
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    uint64_t x = a.lo[l * a.stride], y = b.lo[l * b.stride], c = cin >> l & 1;
    if (OP == 2) std::swap(x, y);
    uint64_t r = OP == 0 ? x + y + c : x - y - c;
    bool cc = OP == 0 ? r >> 32 != 0 : x < y + c;
    co |= (uint64_t)cc << l;
    store_lane<U32>(in, d, l, in.clamp && cc ? (OP == 0 ? 0xffffffffu : 0) : (uint32_t)r);
  }
  w.set_pair(in.operands[1].first, co);
}
void v_cndmask(Wave& w, const Instruction& in) {
  SourceBuffer t0, t1;
  uint64_t m = written_lanes(w, in), c = w.pair(in.operands[3].first);
  Source a = source_of<U32>(w, in, 1, 0, t0), b = source_of<U32>(w, in, 2, 1, t1);
  uint32_t* d = destination<U32>(w, in, m);
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    store_lane<U32>(in, d, l, c >> l & 1 ? b.lo[l * b.stride] : a.lo[l * a.stride]);
  }
}
void v_readfirstlane(Wave& w, const Instruction& in) {
  const Operand& o = in.operands[1];
  uint32_t x;
  uint64_t m = w.exec();
  int l = m ? __builtin_ctzll(m) : 0;
  if (o.kind == OperandKind::vector) {
    int r = vector_register(w, o, 0);
    x = w.vectors[r * 64 + l];
    if (w.machine->report_unwritten && !(w.written[r] >> l & 1)) unwritten_read(w, in, r, 1ull << l);
  } else
    x = (uint32_t)scalar_value<U32>(w, in, o);
  w.scalars[in.operands[0].first] = x;
}
void v_readlane(Wave& w, const Instruction& in) {
  uint32_t l = (uint32_t)scalar_value<U32>(w, in, in.operands[2]) & 63;
  int r = vector_register(w, in.operands[1], 0);
  if (w.machine->report_unwritten && !(w.written[r] >> l & 1)) unwritten_read(w, in, r, 1ull << l);
  w.scalars[in.operands[0].first] = w.vectors[r * 64 + l];
}
void v_writelane(Wave& w, const Instruction& in) {
  uint32_t l = (uint32_t)scalar_value<U32>(w, in, in.operands[2]) & 63;
  int r = in.operands[0].first;
  w.vectors[r * 64 + l] = (uint32_t)scalar_value<U32>(w, in, in.operands[1]);
  w.written[r] |= 1ull << l;
}
void v_swap(Wave& w, const Instruction& in) {
  uint32_t *a = w.vectors + in.operands[0].first * 64, *b = w.vectors + in.operands[1].first * 64;
  for (uint64_t k = w.exec(); k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    std::swap(a[l], b[l]);
  }
}
template <int HI>
void v_mbcnt(Wave& w, const Instruction& in) {
  SourceBuffer t0, t1;
  uint64_t m = w.exec();
  Source a = source_of<U32>(w, in, 1, 0, t0), b = source_of<U32>(w, in, 2, 1, t1);
  uint32_t* d = destination<U32>(w, in, m);
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    uint32_t tm =
        HI ? (l > 32 ? (uint32_t)((1ull << (l - 32)) - 1) : 0) : (l >= 32 ? 0xffffffffu : (1u << l) - 1);
    uint32_t add = b.lo[l * b.stride];
    d[l] = add + __builtin_popcount(a.lo[l * a.stride] & tm);
  }
}
template <int SG>
void v_mad64(Wave& w, const Instruction& in) {  // v_mad_u64_u32 / i64_i32: dst, sdst, a, b, c64
  SourceBuffer t0, t1, t2;
  uint64_t m = w.exec(), co = 0;
  Source a = source_of<U32>(w, in, 2, 0, t0), b = source_of<U32>(w, in, 3, 1, t1),
         c = source_of<U64>(w, in, 4, 2, t2);
  uint32_t* d = destination<U64>(w, in, m);
  for (uint64_t k = m; k; k &= k - 1) {
    int l = __builtin_ctzll(k);
    uint32_t x = a.lo[l * a.stride], y = b.lo[l * b.stride];
    uint64_t z = c.lo[l * c.stride] | (uint64_t)c.hi[l * c.stride] << 32, p, r;
    if (SG) {
      p = (uint64_t)((int64_t)(int32_t)x * (int32_t)y);
      r = p + z;
      __int128 q = (__int128)(int64_t)p + (int64_t)z;
      if (q != (int64_t)r) co |= 1ull << l;
    } else {
      p = (uint64_t)x * y;
      r = p + z;
      if (r < p) co |= 1ull << l;
    }
    d[l] = (uint32_t)r;
    d[64 + l] = (uint32_t)(r >> 32);
  }
  w.set_pair(in.operands[1].first, co);
}
}  // namespace

void add_lane_operations() {
  add_operation("v_add_co_u32", with_carry<0, 0>);
  add_operation("v_sub_co_u32", with_carry<1, 0>);
  add_operation("v_subrev_co_u32", with_carry<2, 0>);
  add_operation("v_addc_co_u32", with_carry<0, 1>);
  add_operation("v_subb_co_u32", with_carry<1, 1>);
  add_operation("v_subbrev_co_u32", with_carry<2, 1>);
  add_operation("v_cndmask_b32", v_cndmask);
  add_operation("v_readfirstlane_b32", v_readfirstlane);
  add_operation("v_readlane_b32", v_readlane);
  add_operation("v_writelane_b32", v_writelane);
  add_operation("v_swap_b32", v_swap);
  add_operation("v_mbcnt_lo_u32_b32", v_mbcnt<0>);
  add_operation("v_mbcnt_hi_u32_b32", v_mbcnt<1>);
  add_operation("v_mad_u64_u32", v_mad64<0>);
  add_operation("v_mad_i64_i32", v_mad64<1>);
  integer_compares<I16>("i16");
  integer_compares<U16>("u16");
  integer_compares<I32>("i32");
  integer_compares<U32>("u32");
  integer_compares<I64>("i64");
  integer_compares<U64>("u64");
  float_compares<F16>("f16");
  float_compares<F32>("f32");
  float_compares<F64>("f64");
  add_operation("v_cmp_class_f16", classify<16, 0>);
  add_operation("v_cmp_class_f32", classify<32, 0>);
  add_operation("v_cmp_class_f64", classify<64, 0>);
  add_operation("v_cmpx_class_f16", classify<16, 1>);
  add_operation("v_cmpx_class_f32", classify<32, 1>);
  add_operation("v_cmpx_class_f64", classify<64, 1>);
}

}  // namespace tilegen::amdemu
