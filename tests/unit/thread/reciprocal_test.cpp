// Division by what a launch passes: as exact as the processor's.
#include "thread/reciprocal.h"

#include <gtest/gtest.h>

#include <random>

namespace tilegen::thread {
namespace {

void expect_exact(int64_t d, int64_t x) {
  ASSERT_EQ(divide_by(reciprocal(d), static_cast<uint32_t>(x)), x / d) << x << " / " << d;
}

// Quotients are decided where they change.
void expect_exact_at_steps(int64_t d) {
  const int64_t most = kMaxDivided / d;
  for (int64_t q : {int64_t{0}, int64_t{1}, int64_t{2}, most / 3, most / 2, most - 1, most})
    for (int64_t x = q * d - 1; x <= q * d + 1; ++x)
      if (x >= 0 && x <= kMaxDivided) expect_exact(d, x);
  expect_exact(d, kMaxDivided);
}

TEST(Reciprocal, IsExactForEverySmallDivisor) {
  for (int64_t d = 1; d <= 20000; ++d) expect_exact_at_steps(d);
}

TEST(Reciprocal, IsExactAroundPowersOfTwo) {
  for (int bit = 1; bit < 31; ++bit)
    for (int64_t d = (int64_t{1} << bit) - 2; d <= (int64_t{1} << bit) + 2; ++d)
      if (d >= 1) expect_exact_at_steps(d);
  expect_exact_at_steps(INT32_MAX - 1);
  expect_exact_at_steps(INT32_MAX);
}

TEST(Reciprocal, IsExactAtRandom) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200000; ++i) {
    const auto bits = random() % 31;
    const auto d = static_cast<int64_t>(random() >> (33 + bits)) + 1;
    expect_exact(d, static_cast<int64_t>(random() % (kMaxDivided + 1)));
  }
}

TEST(Reciprocal, DividesByMoreThan31BitsToNothing) {
  for (int64_t d : {int64_t{INT32_MAX} + 1, int64_t{1} << 40, INT64_MAX})
    for (int64_t x : {int64_t{0}, int64_t{1}, kMaxDivided}) expect_exact(d, x);
}

}  // namespace
}  // namespace tilegen::thread
