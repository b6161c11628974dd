// Few candidates that together are near the best one everywhere.
//
// ensures: at most `most` of them, none needless, the same for equal times; a further one is taken only where
//   it brings the mean over the places of time / best time down by kLeastGain or more.
// why here: which place a launch is at decides what it runs; how many there may be is the caller's.
#pragma once

#include <cstddef>
#include <vector>

namespace tilegen::tune {

constexpr double kLeastGain = 0.005;

// `times`: of each candidate at each place, above 0, or infinite where it does not serve; at each place one
// candidate does. Candidates by index, in ascending order.
std::vector<size_t> cover(const std::vector<std::vector<double>>& times, size_t most);

// The fastest of the `chosen` at a place, the first of equals: an index in `chosen`.
size_t fastest_at(const std::vector<std::vector<double>>& times, const std::vector<size_t>& chosen,
                  size_t place);

}  // namespace tilegen::tune
