// Times of candidates in turn: medians, rest of those far behind, failures, the same order everywhere.
#include "tune/measure_in_turn.h"

#include <gtest/gtest.h>

#include <map>

#include "support/diag_codes.h"

namespace tilegen::tune {
namespace {

TEST(MeasureInTurn, TakesMediansAndLetsThoseFarBehindRest) {
  // Candidate 2 is slow; a sample of 0 is disturbed once.
  std::map<size_t, size_t> samples;
  std::vector<size_t> order;
  const auto times = measure_in_turn(3, 5, [&](size_t c, size_t step, size_t steps) -> Expected<double> {
    EXPECT_EQ(step, order.size());
    EXPECT_EQ(steps, 15u);
    order.push_back(c);
    const size_t n = samples[c]++;
    if (c == 2) return 100.0;
    return c == 0 && n == 3 ? 1000.0 : 10.0 + static_cast<double>(c) + 0.1 * static_cast<double>(n);
  });
  ASSERT_TRUE(times);
  EXPECT_DOUBLE_EQ((*times)[0].microseconds, 10.2);
  EXPECT_DOUBLE_EQ((*times)[1].microseconds, 11.2);
  EXPECT_DOUBLE_EQ((*times)[2].microseconds, 100);
  EXPECT_EQ(samples[0], 5u);
  EXPECT_EQ(samples[1], 5u);
  EXPECT_EQ(samples[2], kAllRounds);
}

TEST(MeasureInTurn, OrdersEachRoundAnewAndTheSameInEveryRun) {
  const auto orders = [] {
    std::vector<size_t> order;
    (void)measure_in_turn(8, 3, [&](size_t c, size_t, size_t) -> Expected<double> {
      order.push_back(c);
      return 1.0;
    });
    return order;
  };
  const std::vector<size_t> order = orders();
  EXPECT_EQ(order, orders());
  ASSERT_EQ(order.size(), 24u);
  const std::vector<size_t> first(order.begin(), order.begin() + 8),
      second(order.begin() + 8, order.begin() + 16);
  EXPECT_NE(first, second);
  std::vector<size_t> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, (std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(MeasureInTurn, KeepsAFailureAsARefusalAndGoesOn) {
  size_t failed = 0;
  const auto times = measure_in_turn(3, 4, [&](size_t c, size_t step, size_t) -> Expected<double> {
    if (c == 1 && step >= 3) return ++failed, Error(DiagCode::driver_failure, "k", "it fell", "pick it up");
    return 5.0;
  });
  ASSERT_TRUE(times);
  EXPECT_EQ(failed, 1u) << "it is not sampled again";
  EXPECT_FALSE((*times)[0].refused);
  ASSERT_TRUE((*times)[1].refused);
  EXPECT_EQ((*times)[1].microseconds, 0);
  EXPECT_EQ((*times)[1].refused->diagnostics[0].message, "it fell");
  EXPECT_EQ((*times)[2].microseconds, 5);
}

TEST(MeasureInTurn, KeepsWhatThereIsWhereACandidateBreaksTheContext) {
  const auto broken = [] {
    return Error(DiagCode::context_broken, "k", "the context is broken", "start again");
  };
  // In the second round: the others have a time.
  size_t samples = 0, breaks = 9;
  const auto times = measure_in_turn(3, 4, [&](size_t c, size_t step, size_t) -> Expected<double> {
    ++samples;
    if (step == 3) return breaks = c, broken();
    return 5.0 + static_cast<double>(c);
  });
  ASSERT_TRUE(times);
  EXPECT_EQ(samples, 4u);
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_EQ((*times)[c].refused.has_value(), c == breaks);
    EXPECT_EQ((*times)[c].microseconds, c == breaks ? 0 : 5.0 + static_cast<double>(c));
  }
  // In the first: one has a time, another was not measured.
  const auto early = measure_in_turn(3, 4, [&](size_t, size_t step, size_t) -> Expected<double> {
    if (step == 1) return broken();
    return 5.0;
  });
  ASSERT_TRUE(early);
  size_t refused = 0;
  for (const MeasuredTime& t : *early) refused += t.refused.has_value() && t.microseconds == 0;
  EXPECT_EQ(refused, 2u);
}

TEST(MeasureInTurn, EndsWhereTheCallerWantsIt) {
  Cancellation cancelled;
  size_t samples = 0;
  const auto times = measure_in_turn(
      4, 4,
      [&](size_t, size_t, size_t) -> Expected<double> {
        if (++samples == 3) cancelled.request();
        return 1.0;
      },
      &cancelled);
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().status(), StatusCode::cancelled);
  EXPECT_EQ(samples, 3u);
}

TEST(MeasureInTurn, OfNoCandidatesIsNothing) {
  const auto times = measure_in_turn(0, 3, [](size_t, size_t, size_t) -> Expected<double> { return 1.0; });
  ASSERT_TRUE(times);
  EXPECT_TRUE(times->empty());
}

}  // namespace
}  // namespace tilegen::tune
