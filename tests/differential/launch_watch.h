// Ends this process when a kernel does not: a wait for the GPU has no other way out, and what the kernel
// holds is free once its process is gone.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tilegen::differential {

// Watches from its construction to its end what this thread does. After TILEGEN_GPU_TIMEOUT seconds (60
// unless told otherwise, 0: for ever) it writes what was launched to stderr and ends the process with
// kExitStatus.
class LaunchWatch {
 public:
  static constexpr int kExitStatus = 124;

  explicit LaunchWatch(std::string what);
  ~LaunchWatch();
  LaunchWatch(const LaunchWatch&) = delete;

 private:
  void watch(double seconds, const std::string& what);
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread watcher_;
};

}  // namespace tilegen::differential
