// Runs work on a thread of our own.
//
// Why: LLVM recurses deeply, and a caller may come from a thread with a small stack, with a floating-point environment
// of its own, or with signal handlers that expect their own threads. The worker has 16 MiB of stack, the default
// floating-point environment, and asynchronous signals blocked.
#pragma once

#include <cstddef>
#include <functional>
#include <new>

#include "support/diagnostic.h"

namespace tilegen {

constexpr size_t kWorkerStackBytes = size_t{16} << 20;

// Thrown where the system starts no further thread.
class NoThread : public std::bad_alloc {
 public:
  const char* what() const noexcept override;
};

// Calls `work` and waits for it. std::bad_alloc out of `work` is thrown here, NoThread as well; any other exception
// becomes an internal_error. Called on a worker already, it runs `work` right there.
Checked run_on_big_stack(const std::function<void()>& work);

}  // namespace tilegen
