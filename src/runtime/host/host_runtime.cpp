#include "runtime/host/host_runtime.h"

#include "runtime/host/kernel_launch.h"
#include "runtime/host/thread_pool.h"

namespace tilegen::runtime {

int host_threads() { return available_cores(); }

Checked run_host(const driver::Artifact& artifact, std::span<const uint64_t> params, int max_threads,
                 const Cancellation* cancellation) {
  const int cores = host_threads();
  const int threads = max_threads > 0 && max_threads < cores ? max_threads : cores;
  for (size_t i = 0; i < artifact.kernels.size(); ++i)
    if (Checked ok =
            launch_kernel(artifact.kernels[i], artifact.host_code->entry(i), params, threads, cancellation);
        !ok)
      return ok;
  return Unit{};
}

}  // namespace tilegen::runtime
