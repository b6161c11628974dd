// Casts that round or end otherwise, by their definitions.
#include "ir/cast_modes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tilegen::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double value_of(ExprPool& e, ExprId id) {
  const ExprNode& n = e[id];
  EXPECT_TRUE(e.is_const(id));
  return n.op == ExprOp::const_float ? n.float_value() : static_cast<double>(n.imm);
}
double cast_of(CastMode mode, DType from, DType to, double value) {
  ExprPool e;
  const ExprId x =
      is_float(from) ? e.const_float(value, from) : e.const_int(static_cast<int64_t>(value), from);
  EXPECT_FALSE(cast_refusal(mode, from, to));
  return value_of(e, cast_by(e, mode, to, x));
}

// The number of the type that follows x towards infinity, of finite ones.
double next(DType t, double x) {
  const uint64_t bits = float_to_bits(t, x), sign = uint64_t{1} << (dtype_bits(t) - 1);
  if (x == 0) return float_from_bits(t, 1);
  return float_from_bits(t, bits & sign ? bits - 1 : bits + 1);
}

TEST(CastModes, FloatsRoundToTheSideTheyName) {
  std::mt19937_64 random(3);
  for (const auto& [from, to] : {std::pair(DType::f32, DType::f16), std::pair(DType::f32, DType::bf16),
                                 std::pair(DType::f64, DType::f32), std::pair(DType::f16, DType::bf16),
                                 std::pair(DType::bf16, DType::f16)}) {
    std::vector<double> values{0.0, -0.0, 1.0, 65504, 65519, 65520, 70000, 6e-8, 2e-8, 3.3895e38};
    for (int i = 0; i < 300; ++i)
      values.push_back(
          std::ldexp(static_cast<double>(random()) * 0x1p-64, static_cast<int>(random() % 40) - 24));
    for (size_t i = values.size(); i-- > 0;) values.push_back(-values[i]);
    for (double given : values) {
      const double x = round_to(from, given);
      if (std::isinf(x)) continue;
      const double down = cast_of({CastRounding::down, {}}, from, to, x);
      const double up = cast_of({CastRounding::up, {}}, from, to, x);
      const double zero = cast_of({CastRounding::zero, {}}, from, to, x);
      EXPECT_LE(down, x) << dtype_name(to);
      EXPECT_GE(up, x) << dtype_name(to);
      EXPECT_EQ(zero, x < 0 ? up : down);
      if (down == up)
        EXPECT_EQ(down, x);
      else
        EXPECT_EQ(std::isinf(down) ? -round_to(to, up) : next(to, down), std::isinf(down) ? -up : up) << x;
      const double near = cast_of({CastRounding::nearest, {}}, from, to, x);
      EXPECT_EQ(near, round_to(to, x));
      const double held = cast_of({CastRounding::up, CastEnd::saturate}, from, to, x);
      EXPECT_TRUE(std::isfinite(held) && (std::isinf(up) || held == up)) << x;
    }
    for (const CastRounding r : {CastRounding::zero, CastRounding::down, CastRounding::up}) {
      EXPECT_EQ(cast_of({r, {}}, from, to, kInfinity), kInfinity);
      EXPECT_EQ(cast_of({r, {}}, from, to, -kInfinity), -kInfinity);
      EXPECT_TRUE(std::isnan(cast_of({r, CastEnd::saturate}, from, to, NAN)));
    }
  }
}

TEST(CastModes, IntegersOfFloatsAndOfIntegers) {
  EXPECT_EQ(cast_of({CastRounding::nearest, {}}, DType::f32, DType::i8, 2.5), 2);
  EXPECT_EQ(cast_of({CastRounding::nearest, {}}, DType::f16, DType::i32, -3.5), -4);
  EXPECT_EQ(cast_of({CastRounding::down, {}}, DType::f64, DType::i32, -1.25), -2);
  EXPECT_EQ(cast_of({CastRounding::up, {}}, DType::bf16, DType::u8, 0.25), 1);
  EXPECT_EQ(cast_of({CastRounding::up, CastEnd::saturate}, DType::f32, DType::u8, 1e9), 255);
  EXPECT_EQ(cast_of({CastRounding::down, {}}, DType::i32, DType::f32, 16777217), 16777216);
  EXPECT_EQ(cast_of({CastRounding::up, {}}, DType::i32, DType::f32, 16777217), 16777218);
  EXPECT_EQ(cast_of({CastRounding::zero, {}}, DType::i32, DType::f16, -65535), -65504);
  const CastMode held{CastRounding::given, CastEnd::saturate};
  const DType types[] = {DType::i8,  DType::u8, DType::i16, DType::u16, DType::i32,
                         DType::u32, DType::i4, DType::u4,  DType::i2};
  for (const DType from : types)
    for (const DType to : types) {
      if (is_packed(from)) continue;
      for (const int64_t v : {INT64_C(-40000), INT64_C(-129), INT64_C(-3), INT64_C(0), INT64_C(7),
                              INT64_C(200), INT64_C(70000), INT64_C(0x7fffffff)}) {
        if (wrap_to(from, v) != v) continue;
        EXPECT_EQ(cast_of(held, from, to, static_cast<double>(v)),
                  static_cast<double>(saturate_to(to, static_cast<double>(v))))
            << dtype_name(from) << " " << v << " " << dtype_name(to);
      }
    }
}

TEST(CastModes, NarrowFloatsMayOverflow) {
  const CastMode over{CastRounding::given, CastEnd::overflow};
  for (const DType from : {DType::f32, DType::f64, DType::f16}) {
    EXPECT_EQ(cast_of(over, from, DType::e5m2, 57344), 57344);
    EXPECT_EQ(cast_of(over, from, DType::e5m2, -61440), -kInfinity);
    EXPECT_EQ(cast_of(over, from, DType::e4m3, 464), 448);
    EXPECT_TRUE(std::isnan(cast_of(over, from, DType::e4m3, 465)));
    EXPECT_TRUE(std::isnan(cast_of(over, from, DType::e4m3, -kInfinity)));
    EXPECT_EQ(cast_of(over, from, DType::e4m3fnuz, 247), 240);
    EXPECT_TRUE(std::isnan(cast_of(over, from, DType::e4m3fnuz, 248)));
    EXPECT_TRUE(std::isnan(cast_of(over, from, DType::e5m2fnuz, 61440)));
  }
}

TEST(CastModes, WhatIsRefused) {
  const auto refused = [](CastRounding r, CastEnd end, DType from, DType to) {
    return cast_refusal({r, end}, from, to).has_value();
  };
  EXPECT_TRUE(refused(CastRounding::zero, {}, DType::f32, DType::boolean));
  EXPECT_TRUE(refused({}, CastEnd::saturate, DType::f32, DType::e8m0));
  EXPECT_TRUE(refused(CastRounding::up, {}, DType::f32, DType::e4m3));
  EXPECT_TRUE(refused(CastRounding::down, {}, DType::i64, DType::f32));
  EXPECT_TRUE(refused({}, CastEnd::overflow, DType::f32, DType::i32));
  EXPECT_TRUE(refused({}, CastEnd::overflow, DType::f32, DType::e2m1));
  EXPECT_FALSE(refused(CastRounding::nearest, {}, DType::f32, DType::e4m3));
  EXPECT_FALSE(refused(CastRounding::down, {}, DType::i64, DType::i8));
  CastMode mode;
  EXPECT_TRUE(set_cast_mode(mode, "zero") && set_cast_mode(mode, "saturate"));
  EXPECT_FALSE(set_cast_mode(mode, "up") || set_cast_mode(mode, "overflow") || set_cast_mode(mode, "away"));
}

}  // namespace
}  // namespace tilegen::ir
