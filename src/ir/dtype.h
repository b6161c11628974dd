// Element types of the tile language. A bool is stored as one byte, 0 or 1.
#pragma once

#include <cstdint>
#include <optional>
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
inline int dtype_bytes(DType t) { return dtype_bits(t) / 8; }
DTypeKind dtype_kind(DType t);
const char* dtype_name(DType t);
std::optional<DType> dtype_from_name(std::string_view name);
bool dtype_valid(uint32_t public_value);

inline bool is_float(DType t) { return dtype_kind(t) == DTypeKind::floating; }
inline bool is_bool(DType t) { return t == DType::boolean; }
inline bool is_integer(DType t) {
  return dtype_kind(t) == DTypeKind::signed_int || dtype_kind(t) == DTypeKind::unsigned_int;
}

// The numerics contract of a cast, shared by every executor: float to narrower float rounds to nearest even and
// overflows to infinity; float to integer truncates, saturates and takes NaN to 0; integer to narrower integer
// wraps; anything to bool is `x != 0`; bool to a number is 0 or 1; integer to f32 or f64 rounds to nearest even, integer
// to f16 or bf16 goes through f32. `value` is exact in a double for every dtype but i64, which eval_cast handles.
double round_to(DType t, double value);          // floating t only: value rounded to t
int64_t wrap_to(DType t, int64_t value);         // integer or bool t: value wrapped to t's range
int64_t saturate_to(DType t, double value);      // integer t: truncated, saturated, NaN -> 0

// Bit patterns of one element in memory, low bits of the result; floating t only.
uint64_t float_to_bits(DType t, double value);
double float_from_bits(DType t, uint64_t bits);

}  // namespace tilegen::ir
