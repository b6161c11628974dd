// Runs a host artifact: the grid is spread over a process-wide pool of worker threads in chunks of blocks.
#pragma once

#include <cstdint>
#include <span>

#include "driver/compile.h"

namespace tilegen::runtime {

// Values of the program's parameters, one 8-byte slot each in Program::params order (tensor base address,
// dim, scalar bits), already checked. Blocks the caller until all kernels ran; any number of threads may
// launch at once. `max_threads` 0 = all cores. Fails only when memory for the arenas cannot be had
// (limit_memory), and when `cancellation`, asked once a millisecond, says so.
Checked run_host(const driver::Artifact& artifact, std::span<const uint64_t> params, int max_threads,
                 const Cancellation* cancellation = nullptr);

// Number of threads a launch uses by default: the cores this process may run on.
int host_threads();

}  // namespace tilegen::runtime
