// Scalar arithmetic, logic and compares.
#include <bit>

#include "scalar_operands.h"

namespace tilegen::amdemu {

namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i32 = int32_t;
using i64 = int64_t;

template <class T>
T reversed(T a) {
  T r = 0;
  for (size_t i = 0; i < 8 * sizeof(T); ++i) r |= (a >> i & 1) << (8 * sizeof(T) - 1 - i);
  return r;
}

// Bits `first` .. of a field of `count`, both in `range`.
template <class T>
T field(T a, u32 range) {
  constexpr u32 kBits = 8 * sizeof(T);
  const u32 first = range & (kBits - 1), count = range >> 16 & 127;
  if (count == 0) return 0;
  const T shifted = static_cast<T>(a >> first);
  if (count >= kBits) return shifted;
  using U = std::make_unsigned_t<T>;
  const U up = static_cast<U>(static_cast<U>(shifted) << (kBits - count));
  return static_cast<T>(static_cast<T>(up) >> (kBits - count));
}

void add_moves() {
  constexpr Scc kKept = Scc::kept;
  scalar_unary<u32, u32, kKept>("s_mov_b32", [](u32 a) { return a; });
  scalar_unary<u64, u64, kKept>("s_mov_b64", [](u64 a) { return a; });
  add_operation("s_movk_i32", [](Wave& w, const Instruction& in) {
    set_scalar<i32>(w, in, static_cast<int16_t>(in.operands[1].value));
  });
  add_operation("s_cmovk_i32", [](Wave& w, const Instruction& in) {
    if (w.scc) set_scalar<i32>(w, in, static_cast<int16_t>(in.operands[1].value));
  });
  add_operation("s_cmov_b32", [](Wave& w, const Instruction& in) {
    if (w.scc) set_scalar(w, in, scalar_operand<u32>(w, in, 1));
  });
  add_operation("s_cmov_b64", [](Wave& w, const Instruction& in) {
    if (w.scc) set_scalar(w, in, scalar_operand<u64>(w, in, 1));
  });
  add_operation("s_cselect_b32", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, scalar_operand<u32>(w, in, w.scc ? 1 : 2));
  });
  add_operation("s_cselect_b64", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, scalar_operand<u64>(w, in, w.scc ? 1 : 2));
  });
  add_operation("s_movrels_b32", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, w.scalars[in.operands[1].first + w.scalars[kM0]]);
  });
  add_operation("s_movreld_b32", [](Wave& w, const Instruction& in) {
    w.scalars[in.operands[0].first + w.scalars[kM0]] = scalar_operand<u32>(w, in, 1);
  });
  add_operation("s_movrels_b64", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, w.pair(static_cast<int>(in.operands[1].first + w.scalars[kM0])));
  });
  add_operation("s_movreld_b64", [](Wave& w, const Instruction& in) {
    w.set_pair(static_cast<int>(in.operands[0].first + w.scalars[kM0]), scalar_operand<u64>(w, in, 1));
  });
}

void add_unary() {
  constexpr Scc kKept = Scc::kept, kSet = Scc::not_zero;
  scalar_unary<u32, u32, kSet>("s_not_b32", [](u32 a) { return ~a; });
  scalar_unary<u64, u64, kSet>("s_not_b64", [](u64 a) { return ~a; });
  scalar_unary<u32, u32, kKept>("s_brev_b32", [](u32 a) { return reversed(a); });
  scalar_unary<u64, u64, kKept>("s_brev_b64", [](u64 a) { return reversed(a); });
  scalar_unary<u32, u32, kSet>("s_bcnt0_i32_b32", [](u32 a) { return std::popcount(~a); });
  scalar_unary<u32, u32, kSet>("s_bcnt1_i32_b32", [](u32 a) { return std::popcount(a); });
  scalar_unary<u32, u64, kSet>("s_bcnt0_i32_b64", [](u64 a) { return std::popcount(~a); });
  scalar_unary<u32, u64, kSet>("s_bcnt1_i32_b64", [](u64 a) { return std::popcount(a); });
  scalar_unary<u32, u32, kKept>("s_ff0_i32_b32", [](u32 a) { return ~a ? std::countr_one(a) : -1; });
  scalar_unary<u32, u32, kKept>("s_ff1_i32_b32", [](u32 a) { return a ? std::countr_zero(a) : -1; });
  scalar_unary<u32, u64, kKept>("s_ff0_i32_b64", [](u64 a) { return ~a ? std::countr_one(a) : -1; });
  scalar_unary<u32, u64, kKept>("s_ff1_i32_b64", [](u64 a) { return a ? std::countr_zero(a) : -1; });
  scalar_unary<u32, u32, kKept>("s_flbit_i32_b32", [](u32 a) { return a ? std::countl_zero(a) : -1; });
  scalar_unary<u32, u64, kKept>("s_flbit_i32_b64", [](u64 a) { return a ? std::countl_zero(a) : -1; });
  scalar_unary<u32, i32, kKept>("s_flbit_i32", [](i32 a) {
    const u32 x = static_cast<u32>(a < 0 ? ~a : a);
    return x ? std::countl_zero(x) : -1;
  });
  scalar_unary<u32, i64, kKept>("s_flbit_i32_i64", [](i64 a) {
    const u64 x = static_cast<u64>(a < 0 ? ~a : a);
    return x ? std::countl_zero(x) : -1;
  });
  scalar_unary<i32, u32, kKept>("s_sext_i32_i8", [](u32 a) { return static_cast<int8_t>(a); });
  scalar_unary<i32, u32, kKept>("s_sext_i32_i16", [](u32 a) { return static_cast<int16_t>(a); });
  scalar_unary<u32, u32, kSet>("s_abs_i32", [](u32 a) { return a >> 31 ? 0 - a : a; });
  scalar_unary<u64, u64, kSet>("s_wqm_b64", [](u64 a) {
    u64 r = 0;
    for (int i = 0; i < 64; i += 4)
      if (a >> i & 15) r |= u64{15} << i;
    return r;
  });
  scalar_unary<u64, u64, kSet>("s_quadmask_b64", [](u64 a) {
    u64 r = 0;
    for (int i = 0; i < 64; i += 4)
      if (a >> i & 15) r |= u64{1} << (i / 4);
    return r;
  });
  scalar_unary<u64, u32, kKept>("s_bitreplicate_b64_b32", [](u32 a) {
    u64 r = 0;
    for (int i = 0; i < 32; ++i)
      if (a >> i & 1) r |= u64{3} << (2 * i);
    return r;
  });
  add_operation("s_bitset0_b32", [](Wave& w, const Instruction& in) {
    w.scalars[in.operands[0].first] &= ~(1u << (scalar_operand<u32>(w, in, 1) & 31));
  });
  add_operation("s_bitset1_b32", [](Wave& w, const Instruction& in) {
    w.scalars[in.operands[0].first] |= 1u << (scalar_operand<u32>(w, in, 1) & 31);
  });
  add_operation("s_bitset0_b64", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, w.pair(in.operands[0].first) & ~(u64{1} << (scalar_operand<u32>(w, in, 1) & 63)));
  });
  add_operation("s_bitset1_b64", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, w.pair(in.operands[0].first) | u64{1} << (scalar_operand<u32>(w, in, 1) & 63));
  });
}

// The old EXEC is kept and a new one made of A and the old; the wrexec forms keep the new one.
template <bool OldKept, class F>
void exec_from(const char* name, F) {
  add_operation(name, [](Wave& w, const Instruction& in) {
    const u64 a = scalar_operand<u64>(w, in, 1), old = w.exec(), made = F{}(a, old);
    set_scalar(w, in, OldKept ? old : made);
    w.set_pair(kExec, made);
    w.scc = made != 0;
  });
}

void add_exec() {
  exec_from<true>("s_and_saveexec_b64", [](u64 a, u64 e) { return a & e; });
  exec_from<true>("s_or_saveexec_b64", [](u64 a, u64 e) { return a | e; });
  exec_from<true>("s_xor_saveexec_b64", [](u64 a, u64 e) { return a ^ e; });
  exec_from<true>("s_andn2_saveexec_b64", [](u64 a, u64 e) { return a & ~e; });
  exec_from<true>("s_orn2_saveexec_b64", [](u64 a, u64 e) { return a | ~e; });
  exec_from<true>("s_nand_saveexec_b64", [](u64 a, u64 e) { return ~(a & e); });
  exec_from<true>("s_nor_saveexec_b64", [](u64 a, u64 e) { return ~(a | e); });
  exec_from<true>("s_xnor_saveexec_b64", [](u64 a, u64 e) { return ~(a ^ e); });
  exec_from<true>("s_andn1_saveexec_b64", [](u64 a, u64 e) { return ~a & e; });
  exec_from<true>("s_orn1_saveexec_b64", [](u64 a, u64 e) { return ~a | e; });
  exec_from<false>("s_andn1_wrexec_b64", [](u64 a, u64 e) { return ~a & e; });
  exec_from<false>("s_andn2_wrexec_b64", [](u64 a, u64 e) { return a & ~e; });
}

// A 64-bit sum or difference, of which bit 32 is the carry.
template <class F>
void with_carry_out(const char* name, F) {
  add_operation(name, [](Wave& w, const Instruction& in) {
    const u64 r = F{}(u64{scalar_operand<u32>(w, in, 1)}, u64{scalar_operand<u32>(w, in, 2)}, u64{w.scc});
    set_scalar(w, in, static_cast<u32>(r));
    w.scc = r >> 32 != 0;
  });
}
template <class F>
void with_overflow(const char* name, F) {
  add_operation(name, [](Wave& w, const Instruction& in) {
    const i64 r = F{}(i64{scalar_operand<i32>(w, in, 1)}, i64{scalar_operand<i32>(w, in, 2)});
    set_scalar(w, in, static_cast<u32>(r));
    w.scc = r != static_cast<i32>(r);
  });
}
template <class T, class F>
void chosen(const char* name, F) {
  add_operation(name, [](Wave& w, const Instruction& in) {
    const T a = scalar_operand<T>(w, in, 1), b = scalar_operand<T>(w, in, 2);
    const bool first = F{}(a, b);
    set_scalar(w, in, first ? a : b);
    w.scc = first;
  });
}

void add_arithmetic() {
  with_carry_out("s_add_u32", [](u64 a, u64 b, u64) { return a + b; });
  with_carry_out("s_sub_u32", [](u64 a, u64 b, u64) { return a - b; });
  with_carry_out("s_addc_u32", [](u64 a, u64 b, u64 c) { return a + b + c; });
  with_carry_out("s_subb_u32", [](u64 a, u64 b, u64 c) { return a - b - c; });
  with_carry_out("s_lshl1_add_u32", [](u64 a, u64 b, u64) { return (a << 1) + b; });
  with_carry_out("s_lshl2_add_u32", [](u64 a, u64 b, u64) { return (a << 2) + b; });
  with_carry_out("s_lshl3_add_u32", [](u64 a, u64 b, u64) { return (a << 3) + b; });
  with_carry_out("s_lshl4_add_u32", [](u64 a, u64 b, u64) { return (a << 4) + b; });
  with_overflow("s_add_i32", [](i64 a, i64 b) { return a + b; });
  with_overflow("s_sub_i32", [](i64 a, i64 b) { return a - b; });
  add_operation("s_addk_i32", [](Wave& w, const Instruction& in) {
    const i64 r =
        i64{static_cast<i32>(w.scalars[in.operands[0].first])} + static_cast<int16_t>(in.operands[1].value);
    set_scalar(w, in, static_cast<u32>(r));
    w.scc = r != static_cast<i32>(r);
  });
  add_operation("s_mulk_i32", [](Wave& w, const Instruction& in) {
    const auto k = static_cast<u32>(static_cast<i32>(static_cast<int16_t>(in.operands[1].value)));
    set_scalar(w, in, w.scalars[in.operands[0].first] * k);
  });
  constexpr Scc kKept = Scc::kept, kSet = Scc::not_zero;
  scalar_binary<u32, u32, u32, kKept>("s_mul_i32", [](u32 a, u32 b) { return a * b; });
  scalar_binary<u32, u32, u32, kKept>("s_mul_hi_u32", [](u32 a, u32 b) { return u64{a} * b >> 32; });
  scalar_binary<u32, i32, i32, kKept>("s_mul_hi_i32", [](i32 a, i32 b) { return i64{a} * b >> 32; });
  chosen<i32>("s_min_i32", [](i32 a, i32 b) { return a < b; });
  chosen<i32>("s_max_i32", [](i32 a, i32 b) { return a > b; });
  chosen<u32>("s_min_u32", [](u32 a, u32 b) { return a < b; });
  chosen<u32>("s_max_u32", [](u32 a, u32 b) { return a > b; });
  scalar_binary<u32, i32, i32, kSet>("s_absdiff_i32", [](i32 a, i32 b) {
    const auto d = static_cast<u32>(a) - static_cast<u32>(b);
    return d >> 31 ? 0 - d : d;
  });
}

template <class T>
void add_logic(const char* bits) {
  constexpr Scc kSet = Scc::not_zero;
  const auto name = [&](const char* n) { return std::string("s_") + n + bits; };
  scalar_binary<T, T, T, kSet>(name("and").c_str(), [](T a, T b) { return a & b; });
  scalar_binary<T, T, T, kSet>(name("or").c_str(), [](T a, T b) { return a | b; });
  scalar_binary<T, T, T, kSet>(name("xor").c_str(), [](T a, T b) { return a ^ b; });
  scalar_binary<T, T, T, kSet>(name("andn2").c_str(), [](T a, T b) { return a & ~b; });
  scalar_binary<T, T, T, kSet>(name("orn2").c_str(), [](T a, T b) { return a | ~b; });
  scalar_binary<T, T, T, kSet>(name("nand").c_str(), [](T a, T b) { return ~(a & b); });
  scalar_binary<T, T, T, kSet>(name("nor").c_str(), [](T a, T b) { return ~(a | b); });
  scalar_binary<T, T, T, kSet>(name("xnor").c_str(), [](T a, T b) { return ~(a ^ b); });
}

void add_shifts() {
  constexpr Scc kKept = Scc::kept, kSet = Scc::not_zero;
  scalar_binary<u32, u32, u32, kSet>("s_lshl_b32", [](u32 a, u32 b) { return a << (b & 31); });
  scalar_binary<u32, u32, u32, kSet>("s_lshr_b32", [](u32 a, u32 b) { return a >> (b & 31); });
  scalar_binary<u32, i32, u32, kSet>("s_ashr_i32", [](i32 a, u32 b) { return a >> (b & 31); });
  scalar_binary<u64, u64, u32, kSet>("s_lshl_b64", [](u64 a, u32 b) { return a << (b & 63); });
  scalar_binary<u64, u64, u32, kSet>("s_lshr_b64", [](u64 a, u32 b) { return a >> (b & 63); });
  scalar_binary<u64, i64, u32, kSet>("s_ashr_i64", [](i64 a, u32 b) { return a >> (b & 63); });
  scalar_binary<u32, u32, u32, kKept>("s_bfm_b32",
                                      [](u32 a, u32 b) { return ((1u << (a & 31)) - 1) << (b & 31); });
  scalar_binary<u64, u32, u32, kKept>("s_bfm_b64",
                                      [](u32 a, u32 b) { return ((u64{1} << (a & 63)) - 1) << (b & 63); });
  scalar_binary<u32, u32, u32, kSet>("s_bfe_u32", [](u32 a, u32 b) { return field(a, b); });
  scalar_binary<u32, i32, u32, kSet>("s_bfe_i32", [](i32 a, u32 b) { return field(a, b); });
  scalar_binary<u64, u64, u32, kSet>("s_bfe_u64", [](u64 a, u32 b) { return field(a, b); });
  scalar_binary<u64, i64, u32, kSet>("s_bfe_i64", [](i64 a, u32 b) { return field(a, b); });
  scalar_binary<u32, u32, u32, kKept>("s_pack_ll_b32_b16",
                                      [](u32 a, u32 b) { return (a & 0xffff) | b << 16; });
  scalar_binary<u32, u32, u32, kKept>("s_pack_lh_b32_b16",
                                      [](u32 a, u32 b) { return (a & 0xffff) | (b & 0xffff0000u); });
  scalar_binary<u32, u32, u32, kKept>("s_pack_hh_b32_b16",
                                      [](u32 a, u32 b) { return a >> 16 | (b & 0xffff0000u); });
}

template <class T>
void add_compares(const std::string& suffix) {
  scalar_compare<T, T>("s_cmp_eq" + suffix, [](T a, T b) { return a == b; });
  scalar_compare<T, T>("s_cmp_lg" + suffix, [](T a, T b) { return a != b; });
  scalar_compare<T, T>("s_cmp_gt" + suffix, [](T a, T b) { return a > b; });
  scalar_compare<T, T>("s_cmp_ge" + suffix, [](T a, T b) { return a >= b; });
  scalar_compare<T, T>("s_cmp_lt" + suffix, [](T a, T b) { return a < b; });
  scalar_compare<T, T>("s_cmp_le" + suffix, [](T a, T b) { return a <= b; });
}

// With a constant of 16 bits, of type K.
template <class T, class K, class F>
void compare_constant(const std::string& name, F) {
  add_operation(name, [](Wave& w, const Instruction& in) {
    w.scc = F{}(scalar_operand<T>(w, in, 0), T{static_cast<K>(in.operands[1].value)});
  });
}
template <class T, class K>
void add_constant_compares(const std::string& suffix) {
  compare_constant<T, K>("s_cmpk_eq" + suffix, [](T a, T b) { return a == b; });
  compare_constant<T, K>("s_cmpk_lg" + suffix, [](T a, T b) { return a != b; });
  compare_constant<T, K>("s_cmpk_gt" + suffix, [](T a, T b) { return a > b; });
  compare_constant<T, K>("s_cmpk_ge" + suffix, [](T a, T b) { return a >= b; });
  compare_constant<T, K>("s_cmpk_lt" + suffix, [](T a, T b) { return a < b; });
  compare_constant<T, K>("s_cmpk_le" + suffix, [](T a, T b) { return a <= b; });
}

void add_bit_tests() {
  scalar_compare<u32, u32>("s_bitcmp0_b32", [](u32 a, u32 b) { return !(a >> (b & 31) & 1); });
  scalar_compare<u32, u32>("s_bitcmp1_b32", [](u32 a, u32 b) { return (a >> (b & 31) & 1) != 0; });
  scalar_compare<u64, u32>("s_bitcmp0_b64", [](u64 a, u32 b) { return !(a >> (b & 63) & 1); });
  scalar_compare<u64, u32>("s_bitcmp1_b64", [](u64 a, u32 b) { return (a >> (b & 63) & 1) != 0; });
}

}  // namespace

void add_scalar_operations() {
  add_moves();
  add_unary();
  add_exec();
  add_arithmetic();
  add_logic<u32>("_b32");
  add_logic<u64>("_b64");
  add_shifts();
  add_compares<i32>("_i32");
  add_compares<u32>("_u32");
  scalar_compare<u64, u64>("s_cmp_eq_u64", [](u64 a, u64 b) { return a == b; });
  scalar_compare<u64, u64>("s_cmp_lg_u64", [](u64 a, u64 b) { return a != b; });
  add_constant_compares<i32, int16_t>("_i32");
  add_constant_compares<u32, uint16_t>("_u32");
  add_bit_tests();
}

}  // namespace tilegen::amdemu
