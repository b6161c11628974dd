// One kernel over its grid on the pool. What run_host does for each kernel of an artifact.
#pragma once

#include <cstdint>
#include <span>

#include "codegen/host_code.h"
#include "support/cancellation.h"
#include "support/diagnostic.h"
#include "thread/thread_program.h"

namespace tilegen::runtime {

Checked launch_kernel(const thread::ThreadProgram& kernel, codegen::HostEntry entry,
                      std::span<const uint64_t> params, int max_threads,
                      const Cancellation* cancellation = nullptr);

}  // namespace tilegen::runtime
