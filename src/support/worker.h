// Runs work on a thread of our own.
//
// Why: LLVM recurses deeply, and a caller may come from a thread with a small stack, with a floating-point
// environment of its own, or with signal handlers that expect their own threads. The worker has 16 MiB of
// stack, the default floating-point environment, and asynchronous signals blocked.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <functional>
#include <new>
#include <string>

#include "support/cancellation.h"
#include "support/diagnostic.h"

namespace tilegen {

constexpr size_t kWorkerStackBytes = size_t{16} << 20;

// Thrown where the system starts no further thread.
class NoThread : public std::bad_alloc {
 public:
  const char* what() const noexcept override;
};

// Calls `work` and waits for it. std::bad_alloc out of `work` is thrown here, NoThread as well; any other
// exception becomes an internal_error. Called on a worker already, it runs `work` right there.
Checked run_on_big_stack(const std::function<void()>& work);

// A worker beside the caller, who ends its work and then destroys this, which waits for it. NoThread is
// thrown here; what `work` throws is lost.
class BesideWorker {
 public:
  explicit BesideWorker(std::function<void()> work);
  ~BesideWorker();
  BesideWorker(const BesideWorker&) = delete;
  BesideWorker& operator=(const BesideWorker&) = delete;

 private:
  std::function<void()> work_;
  pthread_t thread_;
};

// Calls `work` on a worker and waits until it is done, which is true, or until `cancellation` asks to stop:
// then false, at once, and `work` goes on without its caller. So `work` owns all that it touches; the
// argument tells it that nobody waits any more, and it should look there and end early. `leave`, if given, is
// called when the caller gives up, with the stage that the work was in. Exceptions are as above.
//
// At most kLeftWorkers of them go on at a time: the next caller waits for one of them, or for its own
// cancellation. A process that exits, or unloads the library, waits for all of them.
constexpr size_t kLeftWorkers = 4;
using LeavableWork = std::function<void(const Cancellation& left)>;
Expected<bool> run_until_cancelled(LeavableWork work, const Cancellation& cancellation,
                                   const std::function<void(const std::string& stage)>& leave = {});

}  // namespace tilegen
