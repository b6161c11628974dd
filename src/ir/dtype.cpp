#include "ir/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

namespace tilegen::ir {
namespace {

struct DTypeRow {
  DType type;
  const char* name;
  int bits;
  DTypeKind kind;
};

constexpr DTypeRow kRows[] = {
    {DType::none, "none", 0, DTypeKind::none},
#define TILEGEN_DTYPE(name, value, text, bits, kind) {DType::name, text, bits, DTypeKind::kind},
#include "ir/dtypes.def"
#undef TILEGEN_DTYPE
};

constexpr bool rows_are_in_order() {
  for (size_t i = 0; i < std::size(kRows); ++i)
    if (static_cast<size_t>(kRows[i].type) != i) return false;
  return true;
}
static_assert(rows_are_in_order(), "dtypes.def must list the values 1, 2, ... in order");

const DTypeRow& row(DType t) {
  const auto index = static_cast<size_t>(t);
  return kRows[index < std::size(kRows) ? index : 0];
}

constexpr int kDoubleMantissa = 52;
constexpr int kDoubleBias = 1023;
constexpr uint64_t kDoubleExponentMask = 0x7ff;

// A binary format narrower than double. IEEE's, where `largest` is 0; else what lies beyond the code
// `largest` becomes that.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  uint64_t largest = 0;
  bool infinities = true;  // without: all ones are NaN, the other codes of the last exponent are numbers
  bool fnuz = false;       // the code of -0 is the only NaN; the bias is one more
  bool nan = true;         // without: `largest` for a NaN, all codes are numbers
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - (fnuz ? 0 : 1); }
  constexpr uint64_t exponent_mask() const { return ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits; }
  constexpr uint64_t infinity() const { return infinities ? exponent_mask() : largest; }
  constexpr uint64_t overflow() const { return largest != 0 ? largest : infinity(); }
  constexpr uint64_t sign() const { return uint64_t{1} << (exponent_bits + mantissa_bits); }
};

FloatFormat format(DType t) {
  if (t == DType::f16) return {5, 10};
  if (t == DType::bf16) return {8, 7};
  if (t == DType::e4m3) return {4, 3, 0x7e, false};
  if (t == DType::e5m2) return {5, 2, 0x7b};
  if (t == DType::e4m3fnuz) return {4, 3, 0x7f, false, true};
  if (t == DType::e5m2fnuz) return {5, 2, 0x7f, false, true};
  if (t == DType::e2m1) return {2, 1, 0x7, false, false, false};
  return {8, 23};
}

// Done on integers, in one rounding, so the result depends neither on the rounding mode of the calling thread
// nor on a detour over f32. A NaN keeps the leading bits of its payload.
uint64_t encode_signed(FloatFormat fmt, double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const uint64_t sign = bits >> 63 ? fmt.sign() : 0;
  const uint64_t biased = (bits >> kDoubleMantissa) & kDoubleExponentMask;
  const uint64_t mantissa = bits & ((uint64_t{1} << kDoubleMantissa) - 1);
  if (biased == kDoubleExponentMask) {
    if (mantissa == 0) return sign | fmt.infinity();
    if (!fmt.infinities) return sign | (fmt.sign() - 1);
    const uint64_t payload = mantissa >> (kDoubleMantissa - fmt.mantissa_bits);
    return sign | fmt.infinity() | (payload != 0 ? payload : uint64_t{1} << (fmt.mantissa_bits - 1));
  }
  if (biased == 0) return sign;  // a denormal double is far below half of the smallest narrow denormal
  // What the format has exactly, as a normal number, is most of what is asked for.
  const int narrower = kDoubleMantissa - fmt.mantissa_bits;
  const int64_t field = static_cast<int64_t>(biased) - kDoubleBias + fmt.bias();
  if ((mantissa & ((uint64_t{1} << narrower) - 1)) == 0 && field > 0)
    if (const uint64_t exact = static_cast<uint64_t>(field) << fmt.mantissa_bits | mantissa >> narrower;
        exact < fmt.overflow())
      return sign | exact;

  const uint64_t significand = mantissa | uint64_t{1} << kDoubleMantissa;
  const int exponent = static_cast<int>(biased) - kDoubleBias;
  const int smallest = 1 - fmt.bias();
  const int dropped = narrower + (exponent < smallest ? smallest - exponent : 0);
  if (dropped > kDoubleMantissa + 1) return sign;  // below half of the smallest denormal
  uint64_t kept = significand >> dropped;
  const uint64_t rest = significand & ((uint64_t{1} << dropped) - 1);
  const uint64_t half = uint64_t{1} << (dropped - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  // The hidden bit of `kept` adds one to the exponent field, and a carry out of the mantissa another: both
  // are right.
  const uint64_t base =
      exponent < smallest ? 0 : static_cast<uint64_t>(exponent - smallest) << fmt.mantissa_bits;
  const uint64_t rounded = base + kept;
  return sign | (rounded < fmt.overflow() ? rounded : fmt.overflow());
}

uint64_t encode(FloatFormat fmt, double value) {
  if (!fmt.nan && value != value) return fmt.largest;
  if (fmt.fnuz && value != value) return fmt.sign();
  const uint64_t code = encode_signed(fmt, value);
  return fmt.fnuz && code == fmt.sign() ? 0 : code;
}

double decode(FloatFormat fmt, uint64_t bits) {
  const uint64_t sign = (bits & fmt.sign()) != 0 ? uint64_t{1} << 63 : 0;
  const uint64_t mantissa = bits & ((uint64_t{1} << fmt.mantissa_bits) - 1);
  const uint64_t biased = (bits & fmt.exponent_mask()) >> fmt.mantissa_bits;
  const uint64_t wide_mantissa = mantissa << (kDoubleMantissa - fmt.mantissa_bits);
  if (fmt.fnuz && bits == fmt.sign()) return std::numeric_limits<double>::quiet_NaN();
  const bool all_ones = fmt.nan && !fmt.fnuz && (bits & (fmt.sign() - 1)) == fmt.sign() - 1;
  if (fmt.infinities ? biased == fmt.exponent_mask() >> fmt.mantissa_bits : all_ones)
    return std::bit_cast<double>(sign | kDoubleExponentMask << kDoubleMantissa | wide_mantissa);
  if (biased == 0) {
    const double magnitude = std::ldexp(static_cast<double>(mantissa), 1 - fmt.bias() - fmt.mantissa_bits);
    return std::bit_cast<double>(std::bit_cast<uint64_t>(magnitude) | sign);
  }
  const uint64_t wide_exponent = biased - static_cast<uint64_t>(fmt.bias()) + kDoubleBias;
  return std::bit_cast<double>(sign | wide_exponent << kDoubleMantissa | wide_mantissa);
}

// Of e8m0, which has no sign and no zero: the nearest exponent, 0 for what is below all.
constexpr int kScaleBias = 127, kScaleNan = 255;
uint64_t encode_scale(double value) {
  if (!(value >= 0) || std::signbit(value) || std::isinf(value)) return kScaleNan;
  int exponent = 0;
  if (value == 0 || std::frexp(value, &exponent) < 0.75) --exponent;  // of 2^exponent above and below
  return value == 0 ? 0 : static_cast<uint64_t>(std::clamp(exponent + kScaleBias, 0, kScaleNan - 1));
}
double decode_scale(uint64_t code) {
  return code == kScaleNan ? std::numeric_limits<double>::quiet_NaN()
                           : std::ldexp(1.0, static_cast<int>(code) - kScaleBias);
}

}  // namespace

int dtype_bits(DType t) { return row(t).bits; }
DTypeKind dtype_kind(DType t) { return row(t).kind; }
const char* dtype_name(DType t) { return row(t).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 1; i < std::size(kRows); ++i)
    if (name == kRows[i].name) return kRows[i].type;
  return std::nullopt;
}

bool dtype_valid(uint32_t public_value) { return public_value >= 1 && public_value < std::size(kRows); }

double round_to(DType t, double value) {
  if (t == DType::f64) return value;
  if (t == DType::f32 && value == value) return static_cast<double>(static_cast<float>(value));
  if (t == DType::e8m0) return decode_scale(encode_scale(value));
  const FloatFormat fmt = format(t);
  if (fmt.largest != 0 && std::isinf(value)) return std::copysign(decode(fmt, fmt.largest), value);
  return decode(fmt, encode(fmt, value));
}

double round_to_tf32(double value) {
  if (value != value) return value;
  constexpr uint32_t kHalf = 0x1000;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return static_cast<double>(
      std::bit_cast<float>(std::isinf(value) ? bits : (bits + kHalf) & ~(2 * kHalf - 1)));
}

double truncate_to_tf32(double value) {
  if (value != value) return value;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return static_cast<double>(std::bit_cast<float>(bits & ~uint32_t{0x1fff}));
}

int64_t wrap_to(DType t, int64_t value) {
  switch (t) {
    case DType::i8:
      return static_cast<int8_t>(value);
    case DType::u8:
      return static_cast<uint8_t>(value);
    case DType::i16:
      return static_cast<int16_t>(value);
    case DType::u16:
      return static_cast<uint16_t>(value);
    case DType::i32:
      return static_cast<int32_t>(value);
    case DType::u32:
      return static_cast<uint32_t>(value);
    case DType::boolean:
      return value != 0;
    case DType::i4:
      return static_cast<int8_t>(static_cast<uint64_t>(value) << 4) >> 4;
    case DType::u4:
      return value & 15;
    case DType::i2:
      return static_cast<int8_t>(static_cast<uint64_t>(value) << 6) >> 6;
    case DType::u2:
      return value & 3;
    default:
      return value;
  }
}

int64_t saturate_to(DType t, double value) {
  if (value != value) return 0;
  const int bits = dtype_bits(t);
  const bool is_unsigned = dtype_kind(t) == DTypeKind::unsigned_int;
  const double low = is_unsigned ? 0.0 : -std::ldexp(1.0, bits - 1);
  const double end = std::ldexp(1.0, is_unsigned ? bits : bits - 1);  // one past the largest value
  if (value <= low) return is_unsigned ? 0 : std::numeric_limits<int64_t>::min() >> (64 - bits);
  if (is_u64(t)) return static_cast<int64_t>(value >= end ? ~uint64_t{0} : static_cast<uint64_t>(value));
  if (value >= end) return std::numeric_limits<int64_t>::max() >> (is_unsigned ? 63 - bits : 64 - bits);
  return static_cast<int64_t>(value);
}

std::string integer_text(DType t, int64_t value) {
  return is_u64(t) ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value);
}

uint64_t float_to_bits(DType t, double value) {
  if (t == DType::e8m0) return encode_scale(value);
  return t == DType::f64 ? std::bit_cast<uint64_t>(value) : encode(format(t), value);
}

double float_from_bits(DType t, uint64_t bits) {
  if (t == DType::e8m0) return decode_scale(bits);
  return t == DType::f64 ? std::bit_cast<double>(bits) : decode(format(t), bits);
}

}  // namespace tilegen::ir
