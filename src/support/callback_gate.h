// The way to functions of a caller who may leave the work that calls them.
#pragma once

#include <condition_variable>
#include <mutex>

namespace tilegen {

// One thread at a time passes. The caller who leaves closes it, once nobody is inside.
class CallbackGate {
 public:
  // `call` runs with no lock held. Not at all after close().
  template <class Call>
  void pass(const Call& call) {
    if (!enter()) return;
    struct Leave {
      CallbackGate& gate;
      ~Leave() { gate.leave(); }
    } leaves{*this};
    call();
  }
  void close() {
    std::unique_lock lock(mutex_);
    left_.wait(lock, [&] { return !inside_; });
    closed_ = true;
  }

 private:
  bool enter() {
    const std::lock_guard lock(mutex_);
    inside_ = !closed_;
    return inside_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    inside_ = false;
    left_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable left_;
  bool inside_ = false, closed_ = false;
};

}  // namespace tilegen
