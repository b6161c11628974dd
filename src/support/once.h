// Work that is done once and, when it throws, tried again by the next caller.
//
// Why not std::call_once: it calls through a function of the system's C library. An exception cannot pass
// through there in a library that carries its own C++ runtime: the frame belongs to the unwinder of another
// one, which ends the process.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

namespace tilegen {

class Once {
 public:
  // Returns when some call's `work` has come to its end. Others wait meanwhile; `work` must not come back
  // here.
  template <class Work>
  void run(Work&& work) {
    if (done_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    std::forward<Work>(work)();
    done_.store(true, std::memory_order_release);
  }

 private:
  std::atomic<bool> done_{false};
  std::mutex mutex_;
};

}  // namespace tilegen
