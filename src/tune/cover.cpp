#include "tune/cover.h"

#include <algorithm>
#include <cmath>

namespace tilegen::tune {

namespace {

using Times = std::vector<std::vector<double>>;

constexpr double kMostRatio = 1e6;  // a candidate that does not serve is as bad as this

// The mean over the places of the time of the fastest of `chosen`, as a multiple of the best of all.
double mean_ratio(const Times& ratios, const std::vector<size_t>& chosen) {
  const size_t places = ratios.front().size();
  double sum = 0;
  for (size_t p = 0; p < places; ++p) {
    double least = kMostRatio;
    for (size_t c : chosen) least = std::min(least, ratios[c][p]);
    sum += least;
  }
  return sum / static_cast<double>(places);
}

Times ratios_of(const Times& times) {
  Times ratios = times;
  for (size_t p = 0; p < times.front().size(); ++p) {
    double best = INFINITY;
    for (const auto& t : times) best = std::min(best, t[p]);
    for (auto& r : ratios) r[p] = std::min(r[p] / best, kMostRatio);
  }
  return ratios;
}

// The candidate that is best in place of, or beside, `chosen`; its mean.
std::pair<size_t, double> best_with(const Times& ratios, std::vector<size_t> chosen) {
  chosen.push_back(0);
  std::pair<size_t, double> best = {0, INFINITY};
  for (size_t c = 0; c < ratios.size(); ++c) {
    chosen.back() = c;
    const double mean = mean_ratio(ratios, chosen);
    if (mean < best.second * (1 - 1e-12)) best = {c, mean};
  }
  return best;
}

// One at a time another takes the place of a chosen one while that is better.
double exchange(const Times& ratios, std::vector<size_t>& chosen, double mean) {
  for (bool better = true; better;) {
    better = false;
    for (size_t i = 0; i < chosen.size(); ++i) {
      std::vector<size_t> others = chosen;
      others.erase(others.begin() + static_cast<ptrdiff_t>(i));
      const auto [with, least] = best_with(ratios, others);
      if (least >= mean * (1 - 1e-9)) continue;
      chosen[i] = with;
      mean = least;
      better = true;
    }
  }
  return mean;
}

}  // namespace

std::vector<size_t> cover(const Times& times, size_t most) {
  const Times ratios = ratios_of(times);
  std::vector<size_t> chosen;
  double mean = INFINITY;
  while (chosen.size() < most) {
    std::vector<size_t> more = chosen;
    const auto [with, least] = best_with(ratios, chosen);
    more.push_back(with);
    const double settled = exchange(ratios, more, least);
    if (!chosen.empty() && mean - settled < kLeastGain) break;
    chosen = std::move(more);
    mean = settled;
  }
  std::sort(chosen.begin(), chosen.end());
  std::vector<size_t> used;
  for (size_t i = 0; i < chosen.size(); ++i)
    for (size_t p = 0; p < times.front().size(); ++p)
      if (fastest_at(times, chosen, p) == i) {
        used.push_back(chosen[i]);
        break;
      }
  return used;
}

size_t fastest_at(const Times& times, const std::vector<size_t>& chosen, size_t place) {
  size_t best = 0;
  for (size_t i = 1; i < chosen.size(); ++i)
    if (times[chosen[i]][place] < times[chosen[best]][place]) best = i;
  return best;
}

}  // namespace tilegen::tune
