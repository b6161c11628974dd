#include "tune/measure_in_turn.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "support/diag_codes.h"

namespace tilegen::tune {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// A candidate, which is refused, has broken the context: what there is of the others counts.
std::vector<MeasuredTime> without_device(std::vector<MeasuredTime> out,
                                         const std::vector<std::vector<double>>& samples, const Error& why) {
  for (size_t c = 0; c < out.size(); ++c) {
    if (!samples[c].empty() && !out[c].refused) out[c].microseconds = median(samples[c]);
    if (samples[c].empty() && !out[c].refused) out[c].refused = why;
    if (out[c].refused) out[c].microseconds = 0;
  }
  return out;
}

}  // namespace

Expected<std::vector<MeasuredTime>> measure_in_turn(size_t candidates, size_t rounds, const Sample& sample,
                                                    const Cancellation* cancellation) {
  std::vector<MeasuredTime> out(candidates);
  std::vector<std::vector<double>> samples(candidates);
  std::vector<size_t> open(candidates);
  std::iota(open.begin(), open.end(), size_t{0});
  std::minstd_rand random(1);
  size_t step = 0;
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t i = open.size(); i > 1; --i) std::swap(open[i - 1], open[random() % i]);
    for (size_t c : open) {
      if (cancellation && cancellation->requested())
        return cancellation->error("", "while configurations were measured");
      // Those that rest make the steps fewer than there might have been.
      const auto microseconds = sample(c, step++, candidates * rounds);
      if (!microseconds && cancellation && cancellation->requested()) return microseconds.error();
      microseconds ? samples[c].push_back(*microseconds) : void(out[c].refused = microseconds.error());
      if (!microseconds && microseconds.error().diagnostics[0].code == DiagCode::context_broken)
        return without_device(std::move(out), samples, microseconds.error());
    }
    double best = 0;
    for (size_t c : open) {
      if (out[c].refused) continue;
      out[c].microseconds = median(samples[c]);
      if (best == 0 || out[c].microseconds < best) best = out[c].microseconds;
    }
    std::erase_if(open, [&](size_t c) {
      return out[c].refused || (round + 1 >= kAllRounds && out[c].microseconds > kFarBehind * best);
    });
    std::sort(open.begin(), open.end());
  }
  for (MeasuredTime& t : out)
    if (t.refused) t.microseconds = 0;
  return out;
}

}  // namespace tilegen::tune
