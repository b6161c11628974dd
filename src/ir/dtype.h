// Element types of the tile language. A bool is stored as one byte, 0 or 1. e4m3 and e5m2 are the 8-bit
// floats of the OCP specification: e4m3 (E4M3FN) has no infinities, one NaN of each sign (0x7f, 0xff) and 448
// as its largest value; e5m2 is IEEE-like, with infinities. e4m3fnuz and e5m2fnuz are those of CDNA 3: an
// exponent one lower, neither infinities nor a negative zero, whose code 0x80 is the only NaN; 240 and 57344
// are their largest values. Packed types are written in programs, which hold their codes in u8
// (ir/packed_types.h): integers of 4 and 2 bits; e2m1 of OCP, whose codes are all numbers, 6 the largest; and
// e8m0, the scales of OCP's blocks, 2^(code - 127) or, of code 255, NaN.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilegen::ir {

enum class DType : uint8_t {
  none = 0,
#define TILEGEN_DTYPE(name, value, text, bits, kind) name = value,
#include "ir/dtypes.def"
#undef TILEGEN_DTYPE
};

enum class DTypeKind : uint8_t { none, floating, signed_int, unsigned_int, boolean };

int dtype_bits(DType t);
inline int dtype_bytes(DType t) { return dtype_bits(t) / 8; }  // of what programs hold
DTypeKind dtype_kind(DType t);
const char* dtype_name(DType t);
std::optional<DType> dtype_from_name(std::string_view name);
bool dtype_valid(uint32_t public_value);

inline bool is_float(DType t) { return dtype_kind(t) == DTypeKind::floating; }
inline bool is_packed(DType t) { return t >= DType::i4 && t <= DType::e8m0; }
inline int codes_in_byte(DType packed) { return 8 / dtype_bits(packed); }
// Types that values are kept in, never computed in: casts, copies, fills, selections and operands of a gemm.
inline bool is_storage_only(DType t) { return is_packed(t) || (is_float(t) && dtype_bits(t) == 8); }
inline bool is_bool(DType t) { return t == DType::boolean; }
inline bool is_u64(DType t) { return t == DType::u64; }
inline bool is_fnuz(DType t) { return t == DType::e4m3fnuz || t == DType::e5m2fnuz; }
inline bool is_integer(DType t) {
  return dtype_kind(t) == DTypeKind::signed_int || dtype_kind(t) == DTypeKind::unsigned_int;
}

// Values of one have the bits of values of the other: as many. A bool's would mostly be no value.
inline bool same_bits(DType a, DType b) {
  return dtype_bits(a) == dtype_bits(b) && !is_bool(a) && !is_bool(b);
}

// The numerics contract of a cast, shared by every executor: float to narrower float rounds to nearest even
// and overflows to infinity, or saturates at the largest finite value where the target type has 8 bits or
// fewer (infinities do, too; cvt.rn.satfinite of the PTX ISA; a NaN is 6 in e2m1; in e8m0 halves go up, and
// what is negative or infinite is NaN); float to integer truncates, saturates and takes NaN to 0; integer to
// narrower integer wraps; anything to bool is `x != 0`; bool to a number is 0 or 1; integer to f32 or f64
// rounds to nearest even, integer to a narrower float goes through f32. `value` is exact in a double for
// every dtype but i64 and u64, which eval_cast handles. An int64_t holds an integer, of u64 its bits: what
// compares, divides, shifts or converts such numbers asks is_u64.
double round_to(DType t, double value);            // floating t only: value rounded to t
int64_t wrap_to(DType t, int64_t value);           // integer or bool t: wrapped to t's range
std::string integer_text(DType t, int64_t value);  // in decimal
int64_t saturate_to(DType t, double value);        // integer t: truncated, saturated, NaN -> 0

// tf32, what matrix instructions take of an f32: 10 bits of mantissa, nearest with ties away from zero
// (cvt.rna.tf32 of the PTX ISA). Of an f32 value.
double round_to_tf32(double value);
// What others take of it, which leave out the low 13 bits: toward zero. Of an f32 value.
double truncate_to_tf32(double value);

// Bit patterns of one element in memory, low bits of the result; floating t only. Exact for values of t, its
// infinities included; others are rounded as by a cast.
uint64_t float_to_bits(DType t, double value);
double float_from_bits(DType t, uint64_t bits);

}  // namespace tilegen::ir
