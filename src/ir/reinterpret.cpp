#include "ir/reinterpret.h"

#include <bit>

namespace tilegen::ir {
namespace {

// A type whose bits those of `t` may be: integers are what floats are taken apart as.
const char* counterpart(DType t) {
  if (dtype_bits(t) < 8)
    return dtype_bits(t) == 2 ? (t == DType::u2 ? "i2" : "u2") : is_float(t) ? "u4" : "e2m1";
  constexpr const char* kIntegers[] = {"u8", "u16", "u32", "u64"};
  constexpr const char* kFloats[] = {"e4m3", "f16", "f32", "f64"};
  const int row = std::countr_zero(static_cast<unsigned>(dtype_bytes(t)));
  return is_float(t) ? kIntegers[row] : kFloats[row];
}

}  // namespace

std::optional<BitsRefusal> bits_refusal(std::string_view what, DType from, DType to) {
  if (from == to || same_bits(from, to)) return std::nullopt;
  const std::string a = dtype_name(from), b = dtype_name(to);
  if (is_bool(from) || is_bool(to))
    return BitsRefusal{std::string(what) + " reads " + a + " as " + b + ", and a bool has no bits of its own",
                       is_bool(from) ? "cast it: 1 where it holds, else 0" : "compare with 0"};
  const std::string bits = std::to_string(dtype_bits(from));
  return BitsRefusal{std::string(what) + " reads " + a + ", of " + bits + " bits, as " + b + ", of " +
                         std::to_string(dtype_bits(to)),
                     "choose a type of " + bits + " bits such as " + counterpart(from) +
                         ", or give what has the bits of " + b + ", such as " + counterpart(to)};
}

}  // namespace tilegen::ir
