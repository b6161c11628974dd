// What happens before what among the threads of a block, as vector clocks over warps.
//
// A warp's epoch grows when it arrives at a barrier. An access of thread t at epoch e is ordered before what
// warp w does now when t's warp released e at a barrier that w has waited at since. Lanes of one warp are
// ordered the same way: by a barrier that their warp waited at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilegen::sim {

class Ordering {
 public:
  explicit Ordering(int warps) : warps_(warps), epoch_(warps, 1), seen_(size_t(warps) * warps, 0) {}

  // A new block: nothing that happened before is ordered, or visible as of this block.
  void begin_block() {
    for (uint32_t e : epoch_) first_ = e >= first_ ? e + 1 : first_;
    for (uint32_t& e : epoch_) e = first_;
    for (uint32_t& s : seen_) s = first_ - 1;
  }
  uint32_t first_epoch() const { return first_; }
  uint32_t epoch(int warp) const { return epoch_[warp]; }
  // Accesses of warp `by` up to this epoch are ordered before those of `warp` now; for its own warp, those of
  // its other lanes.
  const uint32_t* seen(int warp) const { return &seen_[size_t(warp) * warps_]; }

  // `warp` releases what it did into a barrier's clock.
  void release(int warp, std::vector<uint32_t>& clock) {
    clock.resize(warps_, 0);
    for (int w = 0; w < warps_; ++w)
      raise(clock[w], w == warp ? epoch_[warp] : seen_[size_t(warp) * warps_ + w]);
    ++epoch_[warp];
  }
  void acquire(int warp, const std::vector<uint32_t>& clock) {
    for (int w = 0; w < warps_; ++w) raise(seen_[size_t(warp) * warps_ + w], clock[w]);
  }

 private:
  static void raise(uint32_t& to, uint32_t at_least) { to = to < at_least ? at_least : to; }
  int warps_;
  uint32_t first_ = 1;
  std::vector<uint32_t> epoch_, seen_;
};

}  // namespace tilegen::sim
