// Device memory from which the blocks of a launch claim points of the grid: all 0 whenever no launch runs.
//
// Launches of one stream run one after the other, so that they share a counter; each stream has its own, as
// long as streams are some hundred. Every other launch is given the table of thread/tile_counter_table.h: a
// captured one may run more than once at a time, as its graph may be instantiated, cloned and made part of
// others.
//
// requires: the context is current in every call. ensures: a launch takes no lock and allocates nothing.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "runtime/gpu/driver.h"

namespace tilegen::runtime::gpu {

class TileCounters {
 public:
  // Null, and `result` says why, where the driver fails.
  static std::unique_ptr<TileCounters> make(const Driver& driver, Result& result);
  ~TileCounters();
  void abandon() { memory_ = 0; }  // the context is gone, and its memory with it

  // What a launch on the stream is given.
  Pointer of_launch(Stream stream);

  static constexpr size_t kStreams = 512;  // with counters of their own

 private:
  explicit TileCounters(const Driver& driver) : driver_(driver) {}
  uint64_t key_of(Stream stream) const;
  Result allocate();
  Pointer table() const;

  const Driver& driver_;
  Pointer memory_ = 0;                                     // counters of streams_, then the table
  std::array<std::atomic<uint64_t>, kStreams> streams_{};  // keys; 0: none yet
};

}  // namespace tilegen::runtime::gpu
