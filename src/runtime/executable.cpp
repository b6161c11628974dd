#include "runtime/executable.h"

#include "runtime/cuda/cuda_executable.h"
#include "runtime/devices.h"
#include "runtime/host/host_executable.h"
#include "runtime/inline_array.h"
#include "runtime/sim/sim_executable.h"

namespace tilegen::runtime {

Checked Executable::launch(std::span<const Argument> arguments, const LaunchOptions& options) const {
  if (options.stream && !reach_.cuda)
    return Error(DiagCode::launch_device, "", "the host has no streams, launch.stream is set",
                 "set stream to NULL");
  InlineArray<uint64_t, 64> slots(artifact_->program->params.size());
  if (plan_.bind(arguments, reach_, slots)) return run(slots, options);
  auto bound = bind_arguments(*artifact_->program, arguments, reach_);
  if (!bound) return bound.error();
  return run(*bound, options);
}

Expected<std::unique_ptr<Executable>> load(std::shared_ptr<const driver::Artifact> artifact, size_t ordinal) {
  auto device = find_device(artifact->target, ordinal);
  if (!device) return device.error();
  if (artifact->target.simulated) return load_in_simulator(std::move(artifact));
  if (artifact->target.is_host()) return load_on_host(std::move(artifact));
  return cuda::load_on_cuda(std::move(artifact), (*device)->driver_ordinal);
}

}  // namespace tilegen::runtime
