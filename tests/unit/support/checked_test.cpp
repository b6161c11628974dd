#include "support/checked.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tilegen {
namespace {

TEST(Checked, OverflowIsNothing) {
  EXPECT_EQ(checked_add(INT64_MAX, 0), INT64_MAX);
  EXPECT_EQ(checked_add(INT64_MAX, 1), std::nullopt);
  EXPECT_EQ(checked_sub(INT64_MIN, 1), std::nullopt);
  EXPECT_EQ(checked_mul(int64_t{1} << 32, int64_t{1} << 31), std::nullopt);
  const int64_t fits[] = {1 << 20, 1 << 20, 1 << 20}, overflows[] = {1 << 30, 1 << 30, 16};
  EXPECT_EQ(checked_product(fits), int64_t{1} << 60);
  EXPECT_EQ(checked_product(overflows), std::nullopt);
  EXPECT_EQ(checked_product({}), 1);
}

TEST(Checked, FlooredDivisionAgreesWithItsDefinition) {
  for (int64_t a = -40; a <= 40; ++a)
    for (int64_t b = -9; b <= 9; ++b) {
      if (b == 0) continue;
      const auto quotient = static_cast<double>(a) / static_cast<double>(b);
      EXPECT_EQ(floor_div(a, b), static_cast<int64_t>(std::floor(quotient))) << a << " " << b;
      EXPECT_EQ(ceil_div(a, b), static_cast<int64_t>(std::ceil(quotient))) << a << " " << b;
      EXPECT_EQ(floor_div(a, b) * b + floor_mod(a, b), a);
      EXPECT_TRUE(floor_mod(a, b) == 0 || (floor_mod(a, b) < 0) == (b < 0)) << a << " " << b;
    }
}

TEST(Checked, DivisionNeverTraps) {
  EXPECT_EQ(floor_div(5, 0), 0);
  EXPECT_EQ(floor_mod(5, 0), 0);
  EXPECT_EQ(floor_div(INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(floor_mod(INT64_MIN, -1), 0);
  EXPECT_EQ(ceil_div(5, 0), 0);
  EXPECT_EQ(ceil_div(INT64_MIN, 2), INT64_MIN / 2);
  EXPECT_EQ(ceil_div(INT64_MIN, 3), INT64_MIN / 3);
}

}  // namespace
}  // namespace tilegen
