// Casts that round or end otherwise than cast does.
//
//   cast(f16, x, zero)        the f16 next to x towards 0
//   cast(i32, x, nearest)     cast(i32, rint(x))
//   cast(u8, x, saturate)     of an i32: cast(u8, min(max(x, 0), 255))
//   cast(e5m2, x, overflow)   beyond the largest finite value infinity, of types without one NaN
//
// They are made of casts, comparisons and bits, so every executor computes them alike.
// requires: a value of a type that casts take. ensures: the result is one of `to`.
// why here: parser and builder make the same expressions.
// refuses: roundings of what is beyond 53 bits, of types of 8 bits or fewer, and ends that a type has not.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/expr.h"

namespace tilegen::ir {

enum class CastRounding : uint8_t { given, nearest, zero, down, up };  // given: as cast does
enum class CastEnd : uint8_t { given, saturate, overflow };
struct CastMode {
  CastRounding rounding = CastRounding::given;
  CastEnd end = CastEnd::given;
  bool plain() const { return rounding == CastRounding::given && end == CastEnd::given; }
};
// Sets what the word names; false: it names nothing, or what is set already.
bool set_cast_mode(CastMode& mode, std::string_view word);
constexpr std::string_view kCastModeWords = "nearest, zero, down, up, saturate and overflow";

struct CastRefusal {
  std::string message, hint;
};
std::optional<CastRefusal> cast_refusal(CastMode mode, DType from, DType to);
// What was not refused.
ExprId cast_by(ExprPool& pool, CastMode mode, DType to, ExprId value);
constexpr int kCastLevels = 10;  // of operations, at most

}  // namespace tilegen::ir
