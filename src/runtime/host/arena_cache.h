// Working memory of kernels, one piece per thread, kept from launch to launch.
#pragma once

#include <cstdint>

namespace tilegen::runtime {

// At least `bytes` of 64-byte aligned memory of the calling thread, valid until its next call; null when
// memory cannot be had. Contents are whatever the last kernel left. Freed when the thread ends.
void* thread_arena(int64_t bytes);

}  // namespace tilegen::runtime
