#include "sim/tile_order.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace tilegen::sim {

TileOrder::TileOrder(int64_t points, int64_t launched, const SimOptions& options)
    : points_(points),
      numbers_(static_cast<size_t>(std::max<int64_t>(launched, 0))),
      taken_(numbers_.size()) {
  if (numbers_.empty()) return;
  std::mt19937_64 random(options.seed);
  std::vector<size_t> order(numbers_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (options.order == WarpOrder::reversed) std::reverse(order.begin(), order.end());
  for (int64_t n = 0; n < points - launched; ++n) {
    const auto turn = static_cast<size_t>(n) % order.size();
    numbers_[options.order == WarpOrder::random ? random() % order.size() : order[turn]].push_back(n);
  }
  // Then each is told once that there is nothing left.
  if (options.order == WarpOrder::random) std::shuffle(order.begin(), order.end(), random);
  for (size_t i = 0; i < order.size(); ++i)
    numbers_[order[i]].push_back(points - launched + static_cast<int64_t>(i));
}

int64_t TileOrder::take(int64_t block) {
  ++made_;
  const std::vector<int64_t>& own = numbers_[static_cast<size_t>(block)];
  size_t& taken = taken_[static_cast<size_t>(block)];
  return own[std::min(taken++, own.size() - 1)];
}

}  // namespace tilegen::sim
