// The times of several candidates, measured in turn so that what drifts (clocks, heat, other processes) falls
// on all of them alike.
//
// ensures: rounds, each with every candidate once in an order of its own, the same in every process; a time
// is the median of a candidate's samples. After kAllRounds rounds those kFarBehind of the best rest.
// A candidate that fails keeps no time and is not sampled again. Where one has broken the context for all of
// them, the samples that there are count.
// refuses: cancellation.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "support/cancellation.h"
#include "support/diagnostic.h"

namespace tilegen::tune {

constexpr size_t kAllRounds = 2;
constexpr double kFarBehind = 1.5;

struct MeasuredTime {
  double microseconds = 0;
  std::optional<Error> refused;
};

// Microseconds of `candidate`; `step` of `steps` at most.
using Sample = std::function<Expected<double>(size_t candidate, size_t step, size_t steps)>;

Expected<std::vector<MeasuredTime>> measure_in_turn(size_t candidates, size_t rounds, const Sample& sample,
                                                    const Cancellation* cancellation = nullptr);

}  // namespace tilegen::tune
