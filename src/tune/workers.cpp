#include "tune/workers.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "support/worker.h"

namespace tilegen::tune {

void on_workers(size_t count, unsigned threads, const std::function<void(size_t)>& each) {
  if (threads == 0) threads = std::thread::hardware_concurrency();
  threads = std::clamp(threads, 1u, kMaxThreads);
  std::atomic<size_t> next{0};
  std::mutex throwing;
  std::exception_ptr thrown;
  const auto work = [&] {
    try {
      for (size_t i; (i = next.fetch_add(1)) < count;) each(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(throwing);
      if (!thrown) thrown = std::current_exception();
    }
  };
  {
    std::deque<BesideWorker> beside;
    try {
      while (beside.size() + 1 < std::min<size_t>(threads, count)) beside.emplace_back(work);
    } catch (const NoThread&) {
      // Those that there are do it all.
    }
    (void)run_on_big_stack(work);  // which throws nothing
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace tilegen::tune
