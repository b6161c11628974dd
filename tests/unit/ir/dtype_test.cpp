#include "ir/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tilegen::ir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Narrow {
  DType type;
  int exponent_bits, mantissa_bits;
  uint64_t infinity() const { return ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits; }
};
constexpr Narrow kNarrow[] = {{DType::f16, 5, 10}, {DType::bf16, 8, 7}};

// The value of a finite pattern straight from the definition of the format.
double defined_value(const Narrow& n, uint64_t bits) {
  const auto field = static_cast<int>((bits & n.infinity()) >> n.mantissa_bits);
  const double mantissa = static_cast<double>(bits & ((uint64_t{1} << n.mantissa_bits) - 1));
  const int bias = (1 << (n.exponent_bits - 1)) - 1;
  const double one = std::ldexp(1.0, n.mantissa_bits);
  const double magnitude = field == 0 ? std::ldexp(mantissa, 1 - bias - n.mantissa_bits)
                                      : std::ldexp(one + mantissa, field - bias - n.mantissa_bits);
  return bits >> 15 != 0 ? -magnitude : magnitude;
}

// Rounding by search: among all non-negative patterns the two around |x|, then the nearer, then the even one.
// Long double has 64 bits, so the distances are exact.
uint64_t slow_bits(const Narrow& n, const std::vector<double>& values, double x) {
  const uint64_t sign = std::signbit(x) ? 0x8000 : 0;
  const double m = std::fabs(x);
  const auto above =
      static_cast<uint64_t>(std::upper_bound(values.begin(), values.end(), m) - values.begin());
  const uint64_t low = above - 1;  // values[low] <= m
  if (low == n.infinity()) return sign | low;
  // For rounding, infinity stands where the next finite value would.
  const long double high = above == n.infinity() ? 2.0L * values[low] - values[low - 1] : values[above];
  const long double down = static_cast<long double>(m) - values[low], up = high - m;
  if (down != up) return sign | (down < up ? low : above);
  return sign | (low % 2 == 0 ? low : above);
}

std::vector<double> non_negative_values(const Narrow& n) {
  std::vector<double> values;
  for (uint64_t bits = 0; bits < n.infinity(); ++bits) values.push_back(defined_value(n, bits));
  values.push_back(kInf);
  return values;
}

TEST(DTypeTable, Rows) {
  EXPECT_EQ(dtype_bits(DType::bf16), 16);
  EXPECT_EQ(dtype_bytes(DType::i64), 8);
  EXPECT_EQ(dtype_bytes(DType::boolean), 1);
  EXPECT_EQ(dtype_bits(DType::none), 0);
  EXPECT_EQ(dtype_kind(DType::u8), DTypeKind::unsigned_int);
  EXPECT_FALSE(dtype_valid(0));
  EXPECT_TRUE(dtype_valid(23));
  EXPECT_FALSE(dtype_valid(24));
  EXPECT_TRUE(is_float(DType::e4m3) && is_storage_only(DType::e4m3) && is_storage_only(DType::e5m2));
  EXPECT_FALSE(is_storage_only(DType::f16) || is_storage_only(DType::i8) || is_storage_only(DType::boolean));
  for (uint32_t v = 1; dtype_valid(v); ++v) {
    const auto t = static_cast<DType>(v);
    EXPECT_EQ(dtype_from_name(dtype_name(t)), t);
  }
  EXPECT_EQ(dtype_from_name("none"), std::nullopt);
  EXPECT_EQ(dtype_from_name("f8"), std::nullopt);
}

TEST(DTypeConversion, EveryNarrowPatternComesBack) {
  for (const Narrow& n : kNarrow)
    for (uint64_t bits = 0; bits < 65536; ++bits) {
      const double v = float_from_bits(n.type, bits);
      ASSERT_EQ(float_to_bits(n.type, v), bits) << dtype_name(n.type);
      const uint64_t magnitude = bits & 0x7fff;
      ASSERT_EQ(std::signbit(v), bits >> 15 != 0);
      if (magnitude < n.infinity())
        ASSERT_EQ(v, defined_value(n, bits));
      else
        ASSERT_TRUE(magnitude == n.infinity() ? std::isinf(v) : std::isnan(v)) << bits;
    }
}

TEST(DTypeConversion, NarrowRoundingAgreesWithSearch) {
  std::mt19937_64 random(7);
  for (const Narrow& n : kNarrow) {
    const std::vector<double> values = non_negative_values(n);
    const auto check = [&](double x) {
      ASSERT_EQ(float_to_bits(n.type, x), slow_bits(n, values, x))
          << dtype_name(n.type) << " of " << std::hexfloat << x;
      ASSERT_EQ(round_to(n.type, x), float_from_bits(n.type, slow_bits(n, values, x)));
    };
    // Any double, and doubles whose exponents fit the type.
    for (int i = 0; i < 20000; ++i) {
      const double x = std::bit_cast<double>(random());
      if (std::isfinite(x)) check(x);
      const double unit = std::ldexp(static_cast<double>(random() >> 11), -52);
      const int range = 1 << (n.exponent_bits - 1);
      check(
          std::ldexp(random() % 2 == 0 ? unit : -unit, static_cast<int>(random() % (3 * range)) - 2 * range));
    }
    // Ties, and a hair to both sides of them: where rounding twice goes wrong.
    for (uint64_t bits = 0; bits + 1 < n.infinity(); ++bits) {
      const double tie = (values[bits] + values[bits + 1]) / 2;
      check(tie), check(-tie);
      check(std::nextafter(tie, kInf)), check(std::nextafter(tie, -kInf));
    }
    const double edge = values[n.infinity() - 1] + (values[n.infinity() - 1] - values[n.infinity() - 2]) / 2;
    check(edge), check(std::nextafter(edge, 0.0)), check(kInf), check(-kInf), check(0.0), check(-0.0);
    check(std::numeric_limits<double>::denorm_min()), check(std::numeric_limits<double>::max());
  }
}

constexpr DType kBytes[] = {DType::e4m3, DType::e5m2, DType::e4m3fnuz, DType::e5m2fnuz};

// The 8-bit floats by their definition: e4m3 has numbers in the codes that IEEE has for infinity and NaN, but
// for the last one.
double byte_value(DType t, uint64_t code) {
  const uint64_t magnitude = code & 0x7f;
  const double sign = code >> 7 != 0 ? -1.0 : 1.0;
  if (is_fnuz(t)) {  // the IEEE form's numbers halved, all codes of the last exponent numbers
    if (code == 0x80) return std::numeric_limits<double>::quiet_NaN();
    return sign / 2 *
           (t == DType::e4m3fnuz ? defined_value({t, 4, 3}, magnitude) : defined_value({t, 5, 2}, magnitude));
  }
  if (t == DType::e4m3) {
    if (magnitude == 0x7f) return std::numeric_limits<double>::quiet_NaN();
    return sign * defined_value({t, 4, 3}, magnitude);
  }
  if (magnitude == 0x7c) return sign * kInf;
  return magnitude > 0x7c ? std::numeric_limits<double>::quiet_NaN()
                          : sign * defined_value({t, 5, 2}, magnitude);
}

TEST(DTypeConversion, EveryByteFloatComesBack) {
  for (DType t : kBytes)
    for (uint64_t code = 0; code < 256; ++code) {
      const double v = float_from_bits(t, code), defined = byte_value(t, code);
      ASSERT_EQ(float_to_bits(t, v), code) << dtype_name(t);
      if (!std::isnan(v)) {
        ASSERT_EQ(std::signbit(v), code >> 7 != 0);
      }
      ASSERT_TRUE(std::isnan(defined) ? std::isnan(v) : v == defined)
          << dtype_name(t) << " " << code << " " << v;
    }
  EXPECT_EQ(float_from_bits(DType::e4m3, 0x7e), 448);
  EXPECT_EQ(float_from_bits(DType::e4m3, 0x01), 0x1p-9);
  EXPECT_EQ(float_from_bits(DType::e5m2, 0x7b), 57344);
  EXPECT_EQ(float_from_bits(DType::e5m2, 0x01), 0x1p-16);
  EXPECT_EQ(float_from_bits(DType::e4m3fnuz, 0x7f), 240);
  EXPECT_EQ(float_from_bits(DType::e4m3fnuz, 0x01), 0x1p-10);
  EXPECT_EQ(float_from_bits(DType::e5m2fnuz, 0x7f), 57344);
  EXPECT_EQ(float_from_bits(DType::e5m2fnuz, 0x01), 0x1p-17);
  for (DType t : {DType::e4m3fnuz, DType::e5m2fnuz}) {  // no negative zero, one NaN
    EXPECT_EQ(float_to_bits(t, -0.0), 0u);
    EXPECT_EQ(float_to_bits(t, -0x1p-30), 0u);
    EXPECT_EQ(float_to_bits(t, std::numeric_limits<double>::quiet_NaN()), 0x80u);
    EXPECT_EQ(float_to_bits(t, -kInf), 0xffu);
  }
}

TEST(DTypeConversion, ByteFloatsRoundToTheNearestAndSaturate) {
  std::mt19937_64 random(13);
  for (DType t : kBytes) {
    const uint64_t last = t == DType::e4m3 ? 0x7e : t == DType::e5m2 ? 0x7b : 0x7f;
    const double largest = byte_value(t, last);
    const auto check = [&](double x) {
      const double m = std::fabs(x), got = round_to(t, x);
      ASSERT_EQ(std::signbit(got), std::signbit(x) && !(is_fnuz(t) && got == 0)) << x;
      if (m >= largest) {
        ASSERT_EQ(std::fabs(got), largest) << x;
        return;
      }
      uint64_t low = 0;
      while (byte_value(t, low + 1) <= m) ++low;
      const long double down = static_cast<long double>(m) - byte_value(t, low),
                        up = static_cast<long double>(byte_value(t, low + 1)) - m;
      const uint64_t nearest = down < up || (down == up && low % 2 == 0) ? low : low + 1;
      ASSERT_EQ(std::fabs(got), byte_value(t, nearest)) << dtype_name(t) << " of " << std::hexfloat << x;
      ASSERT_EQ(float_to_bits(t, x), float_to_bits(t, got));
    };
    for (uint64_t bits = 0; bits < 65536; ++bits)  // every value of f16
      if (const double x = float_from_bits(DType::f16, bits); x == x) check(x);
    for (uint64_t code = 0; code < last; ++code) {
      const double tie = (byte_value(t, code) + byte_value(t, code + 1)) / 2;
      for (double x : {tie, std::nextafter(tie, 0.0), std::nextafter(tie, kInf)}) check(x), check(-x);
    }
    for (int i = 0; i < 50000; ++i) {
      const double unit = std::ldexp(static_cast<double>(random() >> 11), -52);
      check(std::ldexp(random() % 2 == 0 ? unit : -unit, static_cast<int>(random() % 48) - 24));
    }
    check(kInf), check(-kInf), check(1e300), check(-5e-324), check(0.0), check(-0.0);
    EXPECT_TRUE(std::isnan(round_to(t, std::numeric_limits<double>::quiet_NaN())));
  }
}

TEST(DTypeConversion, Tf32RoundsTiesAwayFromZero) {
  EXPECT_EQ(truncate_to_tf32(1 + 0x1p-10 + 0x1p-11), 1 + 0x1p-10);
  EXPECT_EQ(truncate_to_tf32(-1 - 0x1.ffep-11), -1);
  EXPECT_EQ(truncate_to_tf32(kInf), kInf);
  EXPECT_EQ(round_to_tf32(1 + 0x1p-11), 1 + 0x1p-10);
  EXPECT_EQ(round_to_tf32(-1 - 0x1p-11), -1 - 0x1p-10);
  EXPECT_EQ(round_to_tf32(1 + 0x1p-11 - 0x1p-23), 1);
  EXPECT_EQ(round_to_tf32(1 + 3 * 0x1p-11), 1 + 0x1p-9);
  EXPECT_EQ(round_to_tf32(0x1p-149), 0);
  EXPECT_EQ(round_to_tf32(0x1p-137), 0x1p-136);
  EXPECT_EQ(round_to_tf32(3.4028234663852886e38), kInf);
  EXPECT_EQ(round_to_tf32(-kInf), -kInf);
  EXPECT_TRUE(std::isnan(round_to_tf32(std::numeric_limits<double>::quiet_NaN())));
  std::mt19937_64 random(17);
  for (int i = 0; i < 100000; ++i) {
    const double x = std::ldexp(static_cast<double>(static_cast<float>(random() >> 40)),
                                static_cast<int>(random() % 200) - 120);
    const double unit = std::ldexp(1.0, std::max(x == 0 ? -126 : std::ilogb(x), -126) - 10);
    ASSERT_EQ(round_to_tf32(x), std::round(x / unit) * unit) << std::hexfloat << x;
  }
}

TEST(DTypeConversion, SingleAgreesWithTheMachine) {
  std::mt19937_64 random(11);
  const auto check = [](double x) {
    const auto expected = static_cast<float>(x);
    ASSERT_EQ(float_to_bits(DType::f32, x), std::bit_cast<uint32_t>(expected)) << std::hexfloat << x;
    ASSERT_EQ(round_to(DType::f32, x), static_cast<double>(expected));
  };
  for (int i = 0; i < 200000; ++i) {
    const double x = std::bit_cast<double>(random());
    if (std::isfinite(x)) check(x);
    const auto pattern = static_cast<uint32_t>(random());
    const double exact = float_from_bits(DType::f32, pattern);
    ASSERT_EQ(float_to_bits(DType::f32, exact), pattern);
    if (!std::isfinite(exact)) continue;
    ASSERT_EQ(exact, static_cast<double>(std::bit_cast<float>(pattern)));
    check(exact);
    const double next = float_from_bits(DType::f32, pattern + 1);
    if (std::isfinite(next)) check((exact + next) / 2), check(std::nextafter((exact + next) / 2, 0.0));
  }
  check(kInf), check(-kInf), check(0.0), check(-0.0), check(3.5e38), check(1e-46);
}

TEST(DTypeConversion, NaNsKeepTheirLeadingBitsAndNeverBecomeInfinity) {
  EXPECT_EQ(float_to_bits(DType::f16, std::bit_cast<double>(uint64_t{0x7ff0000000000001})), 0x7e00u);
  EXPECT_EQ(float_to_bits(DType::bf16, std::bit_cast<double>(uint64_t{0xfff8000000000000})), 0xffc0u);
  EXPECT_TRUE(std::isnan(round_to(DType::f32, std::bit_cast<double>(uint64_t{0x7ff0000000000001}))));
  EXPECT_EQ(float_to_bits(DType::f64, 1.5), std::bit_cast<uint64_t>(1.5));
  EXPECT_EQ(float_from_bits(DType::f64, std::bit_cast<uint64_t>(-2.25)), -2.25);
}

TEST(DTypeConversion, IntegersWrap) {
  for (int64_t v = -1000; v <= 1000; ++v) {
    EXPECT_EQ(wrap_to(DType::u8, v), ((v % 256) + 256) % 256);
    EXPECT_EQ(wrap_to(DType::i8, v), ((v + 128) % 256 + 256) % 256 - 128);
    EXPECT_EQ(wrap_to(DType::u16, 70 * v), ((70 * v % 65536) + 65536) % 65536);
    EXPECT_EQ(wrap_to(DType::i16, 70 * v), ((70 * v + 32768) % 65536 + 65536) % 65536 - 32768);
    EXPECT_EQ(wrap_to(DType::boolean, v), v != 0);
  }
  EXPECT_EQ(wrap_to(DType::boolean, 256), 1);
  EXPECT_EQ(wrap_to(DType::i32, int64_t{1} << 31), -(int64_t{1} << 31));
  EXPECT_EQ(wrap_to(DType::u32, -1), int64_t{0xffffffff});
  EXPECT_EQ(wrap_to(DType::i64, INT64_MIN), INT64_MIN);
  EXPECT_EQ(wrap_to(DType::u64, -1), -1);  // the bits
  EXPECT_EQ(integer_text(DType::u64, -1), "18446744073709551615");
}

TEST(DTypeConversion, FloatsSaturateAndTruncate) {
  EXPECT_EQ(saturate_to(DType::u64, 1e30), -1);  // all bits
  EXPECT_EQ(saturate_to(DType::u64, -3.0), 0);
  EXPECT_EQ(saturate_to(DType::u64, 0x1p63), INT64_MIN);
  struct Range {
    DType type;
    int64_t low, high;
  };
  for (const Range& r :
       {Range{DType::i8, -128, 127}, Range{DType::u8, 0, 255}, Range{DType::i16, INT16_MIN, INT16_MAX},
        Range{DType::u16, 0, UINT16_MAX}, Range{DType::u32, 0, UINT32_MAX},
        Range{DType::i32, INT32_MIN, INT32_MAX}, Range{DType::i64, INT64_MIN, INT64_MAX}}) {
    EXPECT_EQ(saturate_to(r.type, 1e30), r.high);
    EXPECT_EQ(saturate_to(r.type, kInf), r.high);
    EXPECT_EQ(saturate_to(r.type, -1e30), r.low);
    EXPECT_EQ(saturate_to(r.type, -kInf), r.low);
    EXPECT_EQ(saturate_to(r.type, std::numeric_limits<double>::quiet_NaN()), 0);
    EXPECT_EQ(saturate_to(r.type, 3.99), 3);
    EXPECT_EQ(saturate_to(r.type, -0.99), 0);
    EXPECT_EQ(saturate_to(r.type, -3.99), r.low == 0 ? 0 : -3);
    if (r.type == DType::i64) continue;
    EXPECT_EQ(saturate_to(r.type, static_cast<double>(r.high) + 0.5), r.high);
    EXPECT_EQ(saturate_to(r.type, static_cast<double>(r.low) - 0.5), r.low);
    EXPECT_EQ(saturate_to(r.type, static_cast<double>(r.low)), r.low);
  }
  EXPECT_EQ(saturate_to(DType::i64, 0x1p63), INT64_MAX);
  EXPECT_EQ(saturate_to(DType::i64, -0x1p63), INT64_MIN);
  EXPECT_EQ(saturate_to(DType::i64, 0x1.fffffffffffffp62), int64_t{0x7ffffffffffffc00});
}

}  // namespace
}  // namespace tilegen::ir
