#include "launch_watch.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace tilegen::differential {

namespace {

double timeout_seconds() {
  const char* asked = std::getenv("TILEGEN_GPU_TIMEOUT");
  return asked ? std::atof(asked) : 60;
}

}  // namespace

LaunchWatch::LaunchWatch(std::string what) {
  const double seconds = timeout_seconds();
  if (seconds > 0) watcher_ = std::thread([this, seconds, text = std::move(what)] { watch(seconds, text); });
}

LaunchWatch::~LaunchWatch() {
  if (!watcher_.joinable()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  watcher_.join();
}

void LaunchWatch::watch(double seconds, const std::string& what) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (over_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return is_over_; })) return;
  std::fflush(stdout);
  std::fprintf(stderr, "not finished after %g seconds (TILEGEN_GPU_TIMEOUT), the process ends: %s\n", seconds,
               what.c_str());
  std::fflush(stderr);
  _exit(kExitStatus);
}

}  // namespace tilegen::differential
