#include "runtime/host/kernel_launch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "runtime/host/arena_cache.h"
#include "runtime/host/grid.h"
#include "runtime/host/thread_pool.h"
#include "support/diag_codes.h"
#include "support/worker.h"

namespace tilegen::runtime {
namespace {

// Chunks per thread: enough to even out blocks of different length, few enough that handing out costs
// nothing.
constexpr int64_t kChunksPerThread = 16;

class KernelTask final : public PoolTask {
 public:
  KernelTask(codegen::HostEntry entry, const uint64_t* params, const int64_t* grid, int64_t arena_bytes,
             const int32_t* stop)
      : entry_(entry), params_(params), grid_(grid), arena_bytes_(arena_bytes), stop_(stop) {}
  bool prepare() override { return thread_arena(arena_bytes_) != nullptr; }
  void work(int64_t first, int64_t last) override {
    entry_(params_, grid_, first, last, thread_arena(arena_bytes_), stop_);
  }

 private:
  codegen::HostEntry entry_;
  const uint64_t* params_;
  const int64_t* grid_;
  int64_t arena_bytes_;
  const int32_t* stop_;
};

// Asks whether to stop, once a millisecond, while the kernel's threads work, and tells them.
class Watch {
 public:
  Watch(const Cancellation& cancellation, int32_t& stop)
      : worker_([this, &cancellation, &stop] {
          std::unique_lock lock(mutex_);
          while (!left_.wait_for(lock, std::chrono::milliseconds(1), [this] { return over_; }))
            if (cancellation.requested()) return std::atomic_ref(stop).store(1, std::memory_order_relaxed);
        }) {}
  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    left_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  bool over_ = false;
  BesideWorker worker_;  // last: it uses the others
};

}  // namespace

Checked launch_kernel(const thread::ThreadProgram& kernel, codegen::HostEntry entry,
                      std::span<const uint64_t> params, int max_threads, const Cancellation* cancellation) {
  if (params.size() != kernel.params.size())
    return Error(DiagCode::internal_error, kernel.name,
                 "the kernel takes " + std::to_string(kernel.params.size()) +
                     " parameter slots, the launch gives " + std::to_string(params.size()));
  auto grid = evaluate_grid(kernel, params);
  if (!grid) return grid.error();
  if (grid->blocks == 0) return Unit{};
  int32_t stop = 0;
  KernelTask task(entry, params.data(), grid->extents.data(), kernel.arena_bytes, &stop);
  if (!task.prepare())
    return Error(
        DiagCode::limit_memory, kernel.name,
        "no memory for the " + std::to_string(kernel.arena_bytes) + " bytes of tiles each thread needs",
        "use smaller tiles or free memory");
  int64_t chunk = std::max<int64_t>(1, grid->blocks / (kChunksPerThread * std::max(1, max_threads)));
  if (!cancellation) {
    run_on_pool(task, grid->blocks, chunk, max_threads);
    return Unit{};
  }
  {
    const Watch watch(*cancellation, stop);
    run_on_pool(task, grid->blocks, chunk, max_threads);
  }
  if (stop != 0) return cancellation->error(kernel.name, "while its blocks ran");
  return Unit{};
}

}  // namespace tilegen::runtime
