// The process-wide pool that runs the blocks of host kernels.
//
// requires: nothing; starts on first use. ensures: run() returns when every item ran; the caller works too,
// so progress never depends on the workers; launches from several threads share the workers; a forked child
// starts a pool of its own. Never torn down: joining threads from static destructors can hang a host that
// exits.
#pragma once

#include <cstdint>

namespace tilegen::runtime {

// Cores this process may run on (affinity mask), at least 1.
int available_cores();

// Work over items [0, count), handed out in chunks. `work` runs on several threads at once; `prepare` runs
// first on each thread that wants to take part and may decline.
class PoolTask {
 public:
  virtual ~PoolTask() = default;
  virtual bool prepare() { return true; }
  virtual void work(int64_t first, int64_t last) = 0;
};

// Blocks until all items ran. At most `max_threads` threads take part, the caller being one; it does not call
// prepare.
void run_on_pool(PoolTask& task, int64_t count, int64_t chunk, int max_threads);

}  // namespace tilegen::runtime
