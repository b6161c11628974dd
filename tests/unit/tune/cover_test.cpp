// A few candidates near the best everywhere: against all choices of as many.
#include "tune/cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace tilegen::tune {
namespace {

using Times = std::vector<std::vector<double>>;

double loss(const Times& times, const std::vector<size_t>& chosen) {
  double sum = 0;
  for (size_t p = 0; p < times[0].size(); ++p) {
    double best = INFINITY;
    for (const auto& t : times) best = std::min(best, t[p]);
    sum += times[chosen[fastest_at(times, chosen, p)]][p] / best - 1;
  }
  return sum / static_cast<double>(times[0].size());
}

double least_loss(const Times& times, size_t most, std::vector<size_t> chosen = {}, size_t from = 0) {
  double least = chosen.empty() ? INFINITY : loss(times, chosen);
  if (chosen.size() == most) return least;
  for (size_t c = from; c < times.size(); ++c) {
    std::vector<size_t> more = chosen;
    more.push_back(c);
    least = std::min(least, least_loss(times, most, more, c + 1));
  }
  return least;
}

TEST(Cover, TakesWhatIsBestSomewhere) {
  const Times times = {{1, 5, 9}, {5, 1, 9}, {9, 9, 1}, {2, 2, 2}};
  EXPECT_EQ(cover(times, 3), (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(cover(times, 1), (std::vector<size_t>{3}));
}

TEST(Cover, TakesNoMoreThanHelps) {
  EXPECT_EQ(cover({{1, 1.004}, {1.004, 1}, {3, 3}}, 8).size(), 1u);
  EXPECT_EQ(cover({{1, 1}, {1, 1}}, 8), (std::vector<size_t>{0}));
}

TEST(Cover, WhatDoesNotServeIsLeftOut) {
  const Times times = {{1, INFINITY}, {INFINITY, 1}, {INFINITY, 0.5}};
  EXPECT_EQ(cover(times, 4), (std::vector<size_t>{0, 2}));
}

TEST(Cover, IsNearTheBestOfAllChoices) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> time(1, 4);
  for (int round = 0; round < 60; ++round) {
    Times times(8, std::vector<double>(6));
    for (auto& t : times)
      for (double& v : t) v = time(random);
    for (size_t most = 1; most <= 3; ++most) {
      const std::vector<size_t> chosen = cover(times, most);
      EXPECT_LE(chosen.size(), most);
      EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
      EXPECT_LE(1 + loss(times, chosen), 1.1 * (1 + least_loss(times, most))) << round << " " << most;
    }
  }
}

}  // namespace
}  // namespace tilegen::tune
