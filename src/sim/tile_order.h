// Who gets which point of the grid in a launch whose blocks claim them: settled before the blocks run, one by
// one, as if they had claimed in turns, in turns from the last block on, or at random. Results must be the
// same for each.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "sim/simulator.h"

namespace tilegen::sim {

class TileOrder {
 public:
  TileOrder(int64_t points, int64_t launched, const SimOptions& options);

  // The number of the block's next claim. A block that goes on after its last is told that one again, as
  // there is none.
  int64_t take(int64_t block);
  // What the counter holds after the claims so far.
  int64_t counter() const { return points_ > 0 ? made_.load() % points_ : 0; }

  void block_ends() { ++ended_; }
  bool all_ended() const { return ended_ == static_cast<int64_t>(numbers_.size()); }

 private:
  const int64_t points_;
  std::vector<std::vector<int64_t>> numbers_;  // by block, rising
  std::vector<size_t> taken_;                  // by block
  std::atomic<int64_t> made_{0}, ended_{0};
};

}  // namespace tilegen::sim
