// A caller's wish that work stops: answered by a function of the caller's, by a clock, or told from another
// thread.
//
// Work that may last looks at it every so many steps (StopCheck), gives up what it has made, and ends with
// error().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "support/diagnostic.h"

namespace tilegen {

class Cancellation {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  explicit Cancellation(std::function<bool()> ask = {}, Clock::time_point deadline = kNever)
      : ask_(std::move(ask)), deadline_(deadline) {}

  // When a call that begins now and may take so many milliseconds is late; kNever for 0 or less, and for more
  // than a century.
  static Clock::time_point deadline_in(int64_t ms);

  // Whether to stop. Yes is for ever. From any thread; the caller's function is asked by one thread at a
  // time.
  bool requested() const;

  // The same, looking again after a millisecond at the earliest: for loops.
  bool requested_lately() const;

  // Names what is worked on, for whoever asks from another thread where it was left. `stage` lives for ever.
  void enter(const char* stage) const { stage_.store(stage, std::memory_order_relaxed); }
  std::string stage() const {
    const char* name = stage_.load(std::memory_order_relaxed);
    return name ? name : "";
  }

  // Tells to stop.
  void request() { reason_.store(Reason::asked, std::memory_order_relaxed); }

  // Why the work on `op` ended. `where`: "in stage 'plan'". requires: requested() said yes.
  Error error(std::string op, std::string_view where) const;

 private:
  enum class Reason : uint8_t { none, asked, late };

  std::function<bool()> ask_;
  Clock::time_point deadline_;
  mutable std::mutex asking_;
  mutable std::atomic<Reason> reason_{Reason::none};
  mutable std::atomic<Clock::rep> asked_at_{0};
  mutable std::atomic<const char*> stage_{nullptr};
};

// The look of one loop or recursion, on one thread. `every`: steps between two looks; together they take well
// below a millisecond.
class StopCheck {
 public:
  explicit StopCheck(const Cancellation* cancellation, uint32_t every = 1)
      : cancellation_(cancellation), every_(every) {}

  // Counts a step; true: stop.
  bool operator()() {
    if (!cancellation_ || ++steps_ < every_) return false;
    steps_ = 0;
    return cancellation_->requested_lately();
  }

 private:
  const Cancellation* cancellation_;
  uint32_t every_, steps_ = 0;
};

// For one look where there may be nobody to ask.
inline bool stop_requested(const Cancellation* cancellation) {
  return cancellation && cancellation->requested_lately();
}

}  // namespace tilegen
