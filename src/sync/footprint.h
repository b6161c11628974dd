// The elements that an access touches, each with the thread that does, and whether two such sets meet.
#pragma once

#include <cstdint>
#include <vector>

#include "thread/machine.h"

namespace tilegen::sync {

enum class Meeting : uint8_t {
  disjoint,     // no element in common
  same_thread,  // whatever they share belongs to one thread
  same_warpgroup,
  clash
};

class Footprint {
 public:
  explicit Footprint(const thread::Machine& machine) : machine_(machine) {}

  void add(int64_t first, int64_t last, int64_t thread) {
    runs_.push_back({first, last, static_cast<int32_t>(thread)});
  }
  // Each lane of the thread's warp may touch them.
  void add_of_warp(int64_t first, int64_t last, int64_t thread);
  // After all have been added.
  void close();

  bool empty() const { return runs_.empty(); }
  int64_t first() const { return runs_.front().first; }
  int64_t last() const { return runs_.back().last; }

  // Of a's and b's elements, so far moved.
  static Meeting meet(const Footprint& a, int64_t a_shift, const Footprint& b, int64_t b_shift);

 private:
  // `who`: a thread's number, or one of several threads (footprint.cpp).
  struct Run {
    int64_t first = 0, last = 0;
    int32_t who = 0;
  };
  int32_t warpgroup_of(int32_t who) const;
  void mark();
  static bool apart(const Footprint& a, const Footprint& b);

  thread::Machine machine_;
  std::vector<Run> runs_;       // ascending, each element once
  std::vector<uint64_t> bits_;  // elements from 0 on, of small places; empty: not told
};

}  // namespace tilegen::sync
