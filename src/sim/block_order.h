// What ordered atomic operations put in order among the blocks of a launch.
//
// An operation that releases leaves at its element what its thread knows of its block, and what that block
// had acquired. One that acquires takes all that was left there: every operation of the language reads what
// it writes, so those in between, relaxed ones too, hand it on. An access is then ordered before one of
// another block when a release covers it that this block has acquired, at a point that is ordered before the
// access.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/shared_history.h"

namespace tilegen::sim {

class BlockOrder {
 public:
  // `parties`: of what `by.seen` tells.
  void release(const SharedHistory::Actor& by, int64_t block, int parties, uint64_t element);
  void acquire(const SharedHistory::Actor& by, int64_t block, uint64_t element);
  // What `thread` of `other_block` did at `epoch` comes before what `by` of `block` does now.
  bool ordered(int64_t other_block, int thread, uint32_t epoch, const SharedHistory::Actor& by,
               int64_t block) const;

 private:
  struct Release {
    int64_t block = 0;
    int thread = 0;
    uint32_t epoch = 0;
    std::vector<uint32_t> seen;  // by party
  };
  using Releases = std::vector<std::shared_ptr<const Release>>;  // by address, each once
  struct Acquisition {
    int thread = 0;
    uint32_t epoch = 0;
    Releases known;
  };
  static bool before(const Acquisition& a, const SharedHistory::Actor& by);
  static void add(Releases& to, const Releases& more);

  std::atomic<bool> any_ = false;
  mutable std::mutex mutex_;
  std::map<uint64_t, Releases> released_;                 // by element
  std::map<int64_t, std::vector<Acquisition>> acquired_;  // by block
};

}  // namespace tilegen::sim
