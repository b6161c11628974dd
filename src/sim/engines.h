// The parties of a cluster of blocks, or of the one block there is, whose accesses have an order of their
// own: the warps, and the engines that work on their behalf. Works of one engine are finished in order, so
//   that a number says which are.
//
//   product        the matrix products of a warpgroup
//   store_read     what the copy engine reads from shared memory for the stores of a warp
//   store_write    what it writes to global memory for them
//   load           what it writes to shared memory for one transaction barrier: its works are the phases
//
// Warps are numbered block by block, those of a cluster's blocks from a multiple of a warpgroup's on. Of an
// array of transaction barriers each block has its own, one block's after the other's.
#pragma once

#include <vector>

#include "support/checked.h"
#include "thread/thread_program.h"

namespace tilegen::sim {

enum class Party : uint8_t { warp, product, store_read, store_write, load };

class Engines {
 public:
  explicit Engines(const thread::ThreadProgram& p)
      : block_warps_(static_cast<int>(ceil_div(p.threads, int64_t{p.machine.warp}))) {
    const int64_t whole = p.machine.warpgroup / p.machine.warp;
    if (p.cluster > 1) block_warps_ = static_cast<int>(ceil_div(block_warps_, whole) * whole);
    warps_ = block_warps_ * static_cast<int>(p.cluster);
    groups_ = static_cast<int>(ceil_div(warps_, whole));
    count_ = 3 * warps_ + groups_;
    for (const thread::TransactionBarriers& b : p.barriers) {
      first_load_.push_back(count_);
      count_ += static_cast<int>(b.count * p.cluster);
    }
  }
  int warps() const { return warps_; }
  int block_warps() const { return block_warps_; }
  int groups() const { return groups_; }
  int count() const { return count_; }
  int product(int group) const { return warps_ + group; }
  int store_read(int warp) const { return warps_ + groups_ + warp; }
  int store_write(int warp) const { return 2 * warps_ + groups_ + warp; }
  int load(int barriers, int64_t index) const {
    return first_load_[static_cast<size_t>(barriers)] + static_cast<int>(index);
  }
  Party kind(int party) const {
    return party < warps_                 ? Party::warp
           : party < warps_ + groups_     ? Party::product
           : party < 2 * warps_ + groups_ ? Party::store_read
           : party < 3 * warps_ + groups_ ? Party::store_write
                                          : Party::load;
  }

  static constexpr int kMaxThreads = 32000;  // the histories have room for; each party has a warp's

 private:
  int block_warps_ = 0, warps_ = 0, groups_ = 0, count_ = 0;
  std::vector<int> first_load_;
};

}  // namespace tilegen::sim
