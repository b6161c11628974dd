// The numerics contract of one step: against the machine's own arithmetic where that is defined, by hand
// elsewhere.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "ir/expr.h"

namespace tilegen::ir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

ScalarValue real(DType t, double v) { return {t, 0, v}; }
ScalarValue whole(DType t, int64_t v) { return {t, v, 0}; }
double op2(ExprOp op, DType t, double a, double b) { return eval_binary(op, t, real(t, a), real(t, b)).f; }
int64_t op2(ExprOp op, DType t, int64_t a, int64_t b) {
  return eval_binary(op, t, whole(t, a), whole(t, b)).i;
}

TEST(Eval, SingleArithmeticIsTheMachines) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    // Half of the time near x, where cancellation and ties live.
    const float y = random() % 2 == 0 ? std::bit_cast<float>(static_cast<uint32_t>(random()))
                                      : x * static_cast<float>(random() % 64) / 16.0f;
    const auto same = [&](ExprOp op, float expected) {
      const double got = op2(op, DType::f32, static_cast<double>(x), static_cast<double>(y));
      if (std::isnan(expected)) return std::isnan(got);
      return std::bit_cast<uint64_t>(got) == std::bit_cast<uint64_t>(static_cast<double>(expected));
    };
    ASSERT_TRUE(same(ExprOp::add, x + y) && same(ExprOp::sub, x - y) && same(ExprOp::mul, x * y) &&
                same(ExprOp::div, x / y))
        << x << " " << y;
    const double root = eval_unary(ExprOp::sqrt, DType::f32, real(DType::f32, std::fabs(x))).f;
    ASSERT_TRUE(std::isnan(x) ? std::isnan(root) : root == static_cast<double>(std::sqrt(std::fabs(x))));
  }
}

TEST(Eval, HalfArithmeticIsSingleRounded) {
  std::mt19937_64 random(5);
  for (DType t : {DType::f16, DType::bf16})
    for (int i = 0; i < 50000; ++i) {
      const double x = float_from_bits(t, random() & 0xffff), y = float_from_bits(t, random() & 0xffff);
      const auto a = static_cast<float>(x), b = static_cast<float>(y);
      const double expected = round_to(t, static_cast<double>(a * b)), got = op2(ExprOp::mul, t, x, y);
      ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << x << " " << y;
    }
  EXPECT_EQ(op2(ExprOp::add, DType::f16, 65504.0, 16.0), kInf);
  EXPECT_EQ(op2(ExprOp::add, DType::f16, 65504.0, 15.0), 65504.0);
}

TEST(Eval, MinAndMaxIgnoreNaN) {
  EXPECT_EQ(op2(ExprOp::min, DType::f32, kNan, 2.0), 2.0);
  EXPECT_EQ(op2(ExprOp::min, DType::f32, 2.0, kNan), 2.0);
  EXPECT_EQ(op2(ExprOp::max, DType::f32, kNan, -kInf), -kInf);
  EXPECT_EQ(op2(ExprOp::max, DType::f32, 1.0, kNan), 1.0);
  EXPECT_TRUE(std::isnan(op2(ExprOp::max, DType::f32, kNan, kNan)));
  EXPECT_TRUE(std::signbit(op2(ExprOp::min, DType::f32, 0.0, -0.0)));
  EXPECT_TRUE(std::signbit(op2(ExprOp::min, DType::f32, -0.0, 0.0)));
  EXPECT_FALSE(std::signbit(op2(ExprOp::max, DType::f32, -0.0, 0.0)));
  EXPECT_EQ(op2(ExprOp::max, DType::i8, int64_t{-3}, int64_t{2}), 2);
}

TEST(Eval, NaNsOfArithmeticAreOne) {
  const uint64_t quiet = std::bit_cast<uint64_t>(kNan);
  EXPECT_EQ(std::bit_cast<uint64_t>(op2(ExprOp::div, DType::f32, 0.0, 0.0)), quiet);
  EXPECT_EQ(std::bit_cast<uint64_t>(op2(ExprOp::sub, DType::f64, kInf, kInf)), quiet);
  EXPECT_EQ(std::bit_cast<uint64_t>(eval_unary(ExprOp::sqrt, DType::f32, real(DType::f32, -1)).f), quiet);
  EXPECT_EQ(std::bit_cast<uint64_t>(eval_unary(ExprOp::log, DType::f16, real(DType::f16, -1)).f), quiet);
}

TEST(Eval, IntegersWrapAndNeverTrap) {
  EXPECT_EQ(op2(ExprOp::mul, DType::i32, int64_t{1} << 20, int64_t{1} << 20), 0);
  EXPECT_EQ(op2(ExprOp::add, DType::i64, INT64_MAX, int64_t{1}), INT64_MIN);
  EXPECT_EQ(op2(ExprOp::mul, DType::i64, INT64_MIN, int64_t{-1}), INT64_MIN);
  EXPECT_EQ(op2(ExprOp::sub, DType::u8, int64_t{3}, int64_t{5}), 254);
  EXPECT_EQ(op2(ExprOp::floordiv, DType::i8, int64_t{-128}, int64_t{-1}), -128);
  EXPECT_EQ(op2(ExprOp::floordiv, DType::i64, INT64_MIN, int64_t{-1}), INT64_MIN);
  EXPECT_EQ(op2(ExprOp::floormod, DType::i64, INT64_MIN, int64_t{-1}), 0);
  EXPECT_EQ(op2(ExprOp::floordiv, DType::i32, int64_t{9}, int64_t{0}), 0);
  EXPECT_EQ(op2(ExprOp::floormod, DType::i32, int64_t{9}, int64_t{0}), 0);
  EXPECT_EQ(eval_unary(ExprOp::abs, DType::i64, whole(DType::i64, INT64_MIN)).i, INT64_MIN);
  EXPECT_EQ(eval_unary(ExprOp::neg, DType::u8, whole(DType::u8, 1)).i, 255);
  EXPECT_EQ(eval_unary(ExprOp::bit_not, DType::u8, whole(DType::u8, 1)).i, 254);
}

TEST(Eval, ShiftsTakeTheAmountModuloTheWidth) {
  EXPECT_EQ(op2(ExprOp::shl, DType::i32, int64_t{3}, int64_t{33}), 6);
  EXPECT_EQ(op2(ExprOp::shl, DType::i8, int64_t{1}, int64_t{7}), -128);
  EXPECT_EQ(op2(ExprOp::shl, DType::i8, int64_t{1}, int64_t{-1}), -128);
  EXPECT_EQ(op2(ExprOp::shr, DType::i8, int64_t{-128}, int64_t{3}), -16);
  EXPECT_EQ(op2(ExprOp::shr, DType::u8, int64_t{200}, int64_t{10}), 50);
  EXPECT_EQ(op2(ExprOp::shr, DType::i64, int64_t{-1}, int64_t{64}), -1);
}

TEST(Eval, Comparisons) {
  for (ExprOp op : {ExprOp::lt, ExprOp::le, ExprOp::eq}) {
    EXPECT_EQ(eval_binary(op, DType::boolean, real(DType::f32, kNan), real(DType::f32, 1)).i, 0);
    EXPECT_EQ(eval_binary(op, DType::boolean, real(DType::f32, kNan), real(DType::f32, kNan)).i, 0);
  }
  EXPECT_EQ(eval_binary(ExprOp::ne, DType::boolean, real(DType::f32, kNan), real(DType::f32, kNan)).i, 1);
  EXPECT_EQ(eval_binary(ExprOp::eq, DType::boolean, real(DType::f32, 0.0), real(DType::f32, -0.0)).i, 1);
  EXPECT_EQ(eval_binary(ExprOp::lt, DType::boolean, whole(DType::u8, 127), whole(DType::u8, 128)).i, 1);
  EXPECT_EQ(eval_binary(ExprOp::lt, DType::boolean, whole(DType::i8, -1), whole(DType::i8, 0)).type,
            DType::boolean);
}

TEST(Eval, Functions) {
  const auto f = [](ExprOp op, double x) { return eval_unary(op, DType::f64, real(DType::f64, x)).f; };
  EXPECT_EQ(f(ExprOp::exp, 0), 1);
  EXPECT_EQ(f(ExprOp::exp2, 10), 1024);
  EXPECT_EQ(f(ExprOp::log2, 8), 3);
  EXPECT_EQ(f(ExprOp::log, 1), 0);
  EXPECT_EQ(f(ExprOp::rsqrt, 16), 0.25);
  EXPECT_EQ(f(ExprOp::sigmoid, 0), 0.5);
  EXPECT_EQ(f(ExprOp::sigmoid, -1e4), 0);
  EXPECT_EQ(f(ExprOp::tanh, 40), 1);
  EXPECT_EQ(f(ExprOp::erf, 0), 0);
  EXPECT_EQ(f(ExprOp::floor, -0.5), -1);
  EXPECT_TRUE(std::signbit(f(ExprOp::ceil, -0.5)));
  EXPECT_NEAR(eval_unary(ExprOp::exp, DType::f16, real(DType::f16, 1)).f, std::exp(1.0), 1e-3);
  EXPECT_EQ(f(ExprOp::exp10, 3), 1000);
  EXPECT_NEAR(f(ExprOp::cbrt, -27), -3, 1e-15);
  EXPECT_NEAR(f(ExprOp::sin, 1e30), 0.0093314689311758247, 1e-17);
  EXPECT_EQ(f(ExprOp::round, 2.5), 3);
  EXPECT_EQ(f(ExprOp::rint, 2.5), 2);
  EXPECT_EQ(f(ExprOp::trunc, -2.9), -2);
  EXPECT_TRUE(std::signbit(f(ExprOp::round, -0.25)));
  EXPECT_EQ(eval_unary(ExprOp::isnan, DType::boolean, real(DType::f16, kNan)).i, 1);
  EXPECT_EQ(eval_unary(ExprOp::isinf, DType::boolean, real(DType::f16, -INFINITY)).i, 1);
  const auto f2 = [](ExprOp op, double x, double y) {
    return eval_binary(op, DType::f64, real(DType::f64, x), real(DType::f64, y)).f;
  };
  EXPECT_EQ(f2(ExprOp::pow, 0, 0), 1);
  EXPECT_EQ(f2(ExprOp::pow, -2, 3), -8);
  EXPECT_EQ(f2(ExprOp::fmod, -7, 3), -1);
  EXPECT_EQ(f2(ExprOp::atan2, 0, -1), std::atan2(0.0, -1.0));
  EXPECT_EQ(f2(ExprOp::copysign, 3, -0.0), -3);
  const auto fma = [](DType t, double a, double b, double c) {
    return eval_ternary(ExprOp::fma, t, real(t, a), real(t, b), real(t, c)).f;
  };
  EXPECT_EQ(fma(DType::f32, 1 + 0x1p-23, 1 - 0x1p-23, -1), -0x1p-46);
  EXPECT_EQ(fma(DType::f64, 1 + 0x1p-52, 1 - 0x1p-52, -1), -0x1p-104);
  EXPECT_EQ(fma(DType::f16, 0x1p-12, 0x1p-12, 1 + 0x1p-10), 1 + 0x1p-10);
}

TEST(Eval, Bits) {
  const auto count = [](ExprOp op, DType t, int64_t v) { return eval_unary(op, t, whole(t, v)).i; };
  EXPECT_EQ(count(ExprOp::popcount, DType::i8, -1), 8);
  EXPECT_EQ(count(ExprOp::popcount, DType::i64, -1), 64);
  EXPECT_EQ(count(ExprOp::clz, DType::u8, 1), 7);
  EXPECT_EQ(count(ExprOp::clz, DType::i32, 0), 32);
  EXPECT_EQ(count(ExprOp::clz, DType::i32, -1), 0);
  EXPECT_EQ(count(ExprOp::ctz, DType::i8, -128), 7);
  EXPECT_EQ(count(ExprOp::ctz, DType::i64, 0), 64);
  const auto high = [](DType t, int64_t a, int64_t b) {
    return eval_binary(ExprOp::mulhi, t, whole(t, a), whole(t, b)).i;
  };
  EXPECT_EQ(high(DType::i64, INT64_MIN, INT64_MIN), int64_t{1} << 62);
  EXPECT_EQ(high(DType::i32, -1, 1), -1);
  EXPECT_EQ(high(DType::u8, 255, 255), 254);
}

TEST(Eval, Casts) {
  const auto to = [](DType t, ScalarValue v) { return eval_cast(t, v); };
  EXPECT_EQ(to(DType::i8, real(DType::f32, 300)).i, 127);
  EXPECT_EQ(to(DType::i8, whole(DType::i32, 300)).i, 44);
  EXPECT_EQ(to(DType::u8, real(DType::f32, -3)).i, 0);
  EXPECT_EQ(to(DType::i32, real(DType::f32, kNan)).i, 0);
  EXPECT_EQ(to(DType::boolean, real(DType::f32, kNan)).i, 1);
  EXPECT_EQ(to(DType::boolean, real(DType::f32, -0.0)).i, 0);
  EXPECT_EQ(to(DType::boolean, whole(DType::i32, 256)).i, 1);
  EXPECT_EQ(to(DType::f16, whole(DType::boolean, 1)).f, 1.0);
  // Straight from f64: by way of f32 this would tie and round to even, down.
  EXPECT_EQ(to(DType::f16, real(DType::f64, 0x1.0020000000001p0)).f, 0x1.004p0);
  // i64 to f32 in one rounding: by way of double this would tie and round down.
  const int64_t hair_above_tie = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  EXPECT_EQ(to(DType::f32, whole(DType::i64, hair_above_tie)).f, 0x1.000002p60);
  EXPECT_EQ(to(DType::f64, whole(DType::i64, INT64_MAX)).f, 0x1p63);
}

}  // namespace
}  // namespace tilegen::ir
