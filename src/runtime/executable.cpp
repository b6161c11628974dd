#include "runtime/executable.h"

#include "driver/specialisations.h"
#include "runtime/devices.h"
#include "runtime/gpu/gpu_executable.h"
#include "runtime/host/host_executable.h"
#include "runtime/kernel_version.h"
#include "runtime/sim/sim_executable.h"
#include "runtime/specialised_executable.h"
#include "support/diag_codes.h"

namespace tilegen::runtime {

namespace {

[[gnu::cold]] Error no_streams() {
  return Error(DiagCode::launch_device, "", "the host has no streams, launch.stream is set",
               "set stream to NULL");
}

}  // namespace

VersionInfo version_row(const KernelVersion& version, size_t kernel, size_t variant) {
  VersionInfo row;
  row.kernel = kernel;
  row.variant = variant;
  row.program = &version.program();
  row.guards = version.guards_text();
  row.dynamic_shared_bytes = row.program->arena_bytes;
  return row;
}

[[gnu::hot]] Checked Executable::launch(std::span<const Argument> arguments,
                                        const LaunchOptions& options) const {
  if (options.stream && reach_.on_host()) return no_streams();
  uint64_t slots[ArgumentPlan::kMaxParams];
  if (!plan_.bind(arguments, reach_, slots)) return launch_unplanned(arguments, options);
  if (!workspace_.empty()) return run_in_workspace({slots, plan_.params()}, options);
  return run({slots, plan_.params()}, options);
}

Checked Executable::run_in_workspace(std::span<uint64_t> slots, const LaunchOptions& options) const {
  return workspace_.in_host_memory(
      slots, artifact_->target.simulated, [&] { return run(slots, options); }, options.lines);
}

[[gnu::cold]] Checked Executable::launch_unplanned(std::span<const Argument> arguments,
                                                   const LaunchOptions& options) const {
  auto bound = bind_arguments(artifact_->launch_program(), arguments, reach_);
  if (!bound) return bound.error();
  return workspace_.empty() ? run(*bound, options) : run_in_workspace(*bound, options);
}

namespace {

// As the other executable has them: workspaces of its own are still to be placed.
std::vector<uint64_t> slots_for(const driver::Artifact& other, std::span<const uint64_t> slots) {
  std::vector<uint64_t> own(slots.begin(), slots.begin() + static_cast<long>(other.program->params.size()));
  own.resize(other.launch_program().params.size());
  return own;
}

}  // namespace

Checked Executable::run_of(const Executable& e, std::span<const uint64_t> slots,
                           const LaunchOptions& options) {
  const driver::Artifact& other = e.artifact();
  if (!other.launched) return e.run(slots.first(other.program->params.size()), options);
  std::vector<uint64_t> own = slots_for(other, slots);
  return e.run_in_workspace(own, options);
}

Checked Executable::run_in_workspace_of(const Executable& e, std::span<uint64_t> slots,
                                        const LaunchOptions& options) {
  std::vector<uint64_t> own = slots_for(e.artifact(), slots);
  return e.run_in_workspace(own, options);
}

namespace {

Expected<std::unique_ptr<Executable>> load_all(std::shared_ptr<const driver::Artifact> artifact,
                                               size_t ordinal) {
  std::vector<std::unique_ptr<Executable>> loaded;
  for (const auto& each : artifact->specialised->artifacts) {
    auto one = load(each, ordinal);
    if (!one) return one.error();
    loaded.push_back(std::move(*one));
  }
  return join_loaded(std::move(artifact), std::move(loaded));
}

}  // namespace

Expected<std::unique_ptr<Executable>> load(std::shared_ptr<const driver::Artifact> artifact, size_t ordinal) {
  if (artifact->specialised) return load_all(std::move(artifact), ordinal);
  auto device = find_device(artifact->target, ordinal);
  if (!device) return device.error();
  if (artifact->target.simulated) return load_in_simulator(std::move(artifact));
  switch (artifact->target.code) {
    case target::CodeFormat::object:
      return load_on_host(std::move(artifact));
    case target::CodeFormat::ptx:
    case target::CodeFormat::hsaco: {
      auto driver = driver_of(**device);
      if (!driver) return driver.error();
      return gpu::load_on_gpu(**driver, std::move(artifact), (*device)->driver_ordinal);
    }
  }
  return Error(DiagCode::target_unsupported, "", "no loader takes code of " + artifact->target.name,
               "compile for 'host'");
}

}  // namespace tilegen::runtime
