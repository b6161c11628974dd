// Independent work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace tilegen::tune {

constexpr unsigned kMaxThreads = 16;

// Calls `each` for 0 .. count - 1 on `threads` workers, 0 for the cores; fewer where the system starts no
// more. What `each` throws ends the work and is thrown here.
void on_workers(size_t count, unsigned threads, const std::function<void(size_t)>& each);

}  // namespace tilegen::tune
