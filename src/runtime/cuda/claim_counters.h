// Counters that the blocks of a launch claim points of the grid from: 4 bytes of device memory, 0 whenever no launch that has
// them runs.
//
// Launches of one stream run one after the other, so that they share a counter; each stream has its own. A launch that is
// captured has one for itself: a graph may run beside any stream. Nothing is given back before all go: neither streams nor
// graphs say when they end.
//
// requires: the context is current in every call. ensures: a launch on a stream that was seen before takes no lock and
// allocates nothing, as long as streams are some hundred.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/cuda/driver.h"

namespace tilegen::runtime::cuda {

class ClaimCounters {
 public:
  // Null, and `result` says why, where the driver fails.
  static std::unique_ptr<ClaimCounters> make(const Driver& driver, CuResult& result);
  ~ClaimCounters();
  void abandon() { slabs_.clear(); }  // the context is gone, and its memory with it

  // The counter of a launch on the stream.
  CuResult of_launch(CuStream stream, CuPointer& counter);

  static constexpr size_t kStreams = 512;  // found without a lock

 private:
  explicit ClaimCounters(const Driver& driver) : driver_(driver) {}
  uint64_t key_of(CuStream stream) const;
  CuResult of_rare_stream(uint64_t key, CuPointer& counter);
  CuResult fresh(CuPointer& counter);  // under mutex_
  CuResult grow();

  const Driver& driver_;
  CuPointer first_ = 0;                              // counter of streams_[0]; the others behind it
  std::array<std::atomic<uint64_t>, kStreams> streams_{};  // keys; 0: none yet
  std::mutex mutex_;
  std::unordered_map<uint64_t, CuPointer> rare_;     // of streams beyond those
  std::vector<CuPointer> slabs_;
  CuPointer next_ = 0, end_ = 0;                     // not handed out yet
};

}  // namespace tilegen::runtime::cuda
