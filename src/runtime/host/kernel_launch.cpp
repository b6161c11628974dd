#include "runtime/host/kernel_launch.h"

#include <algorithm>

#include "runtime/host/arena_cache.h"
#include "runtime/host/grid.h"
#include "runtime/host/thread_pool.h"

namespace tilegen::runtime {
namespace {

// Chunks per thread: enough to even out blocks of different length, few enough that handing out costs
// nothing.
constexpr int64_t kChunksPerThread = 16;

class KernelTask final : public PoolTask {
 public:
  KernelTask(codegen::HostEntry entry, const uint64_t* params, const int64_t* grid, int64_t arena_bytes)
      : entry_(entry), params_(params), grid_(grid), arena_bytes_(arena_bytes) {}
  bool prepare() override { return thread_arena(arena_bytes_) != nullptr; }
  void work(int64_t first, int64_t last) override {
    entry_(params_, grid_, first, last, thread_arena(arena_bytes_));
  }

 private:
  codegen::HostEntry entry_;
  const uint64_t* params_;
  const int64_t* grid_;
  int64_t arena_bytes_;
};

// The same with somebody to ask between blocks: as many run in one go as take about a millisecond.
class StoppableTask final : public PoolTask {
 public:
  StoppableTask(KernelTask& task, const Cancellation& cancellation) : task_(task), cancellation_(cancellation) {}
  bool prepare() override { return task_.prepare(); }
  void work(int64_t first, int64_t last) override {
    int64_t step = 1;
    while (first < last && !cancellation_.requested_lately()) {
      const int64_t behind = std::min(last, first + step);
      const auto start = Cancellation::Clock::now();
      task_.work(first, behind);
      first = behind;
      const bool quick = Cancellation::Clock::now() - start < kLookEvery / 2;
      step = quick ? std::min(2 * step, kMostBlocksInOneGo) : std::max<int64_t>(1, step / 2);
    }
  }

 private:
  static constexpr std::chrono::milliseconds kLookEvery{1};
  static constexpr int64_t kMostBlocksInOneGo = 1 << 20;
  KernelTask& task_;
  const Cancellation& cancellation_;
};

}  // namespace

Checked launch_kernel(const thread::ThreadProgram& kernel, codegen::HostEntry entry,
                      std::span<const uint64_t> params, int max_threads,
                      const Cancellation* cancellation) {
  if (params.size() != kernel.params.size())
    return Error(DiagCode::internal_error, kernel.name,
                 "the kernel takes " + std::to_string(kernel.params.size()) +
                     " parameter slots, the launch gives " + std::to_string(params.size()));
  auto grid = evaluate_grid(kernel, params);
  if (!grid) return grid.error();
  if (grid->blocks == 0) return Unit{};
  KernelTask task(entry, params.data(), grid->extents.data(), kernel.arena_bytes);
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
  StoppableTask stoppable(task, *cancellation);
  run_on_pool(stoppable, grid->blocks, chunk, max_threads);
  if (cancellation->requested()) return cancellation->error(kernel.name, "while its blocks ran");
  return Unit{};
}

}  // namespace tilegen::runtime
