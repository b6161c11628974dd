#include "runtime/host/host_executable.h"

#include <algorithm>

#include "runtime/host/host_runtime.h"
#include "runtime/kernel_version.h"
#include "support/diag_codes.h"

namespace tilegen::runtime {
namespace {

// Code for a wider machine would die on its first instruction, so it is refused when it is loaded.
Checked runs_here(const target::Target& t) {
  auto found = target::find_target("host");
  if (!found) return found.error();
  const target::Target& host = *found;
  std::string missing;
  for (const std::string& f : t.features)
    if (!f.empty() && f[0] == '+' &&
        std::find(host.features.begin(), host.features.end(), f) == host.features.end())
      missing += (missing.empty() ? "" : ", ") + f.substr(1);
  if (missing.empty() && t.vector_bytes > host.vector_bytes)
    missing = std::to_string(8 * t.vector_bytes) + "-bit vectors";
  if (missing.empty()) return Unit{};
  return Error(DiagCode::device_absent, "",
               "the artifact is for " + t.name + ", this machine (" + host.cpu + ") lacks " + missing,
               "compile for the target 'host'");
}

class HostExecutable final : public Executable {
 public:
  explicit HostExecutable(std::shared_ptr<const driver::Artifact> artifact)
      : Executable(std::move(artifact), MemoryReach{}) {}

  Checked prepare() override { return Unit{}; }

  Expected<std::vector<VersionInfo>> info() const override {
    std::vector<VersionInfo> rows;
    for (size_t k = 0; k < artifact().versions.size(); ++k) {
      VersionInfo row;
      row.kernel = k;
      row.program = &artifact().kernels[artifact().versions[k].first];
      row.measured = true;
      row.dynamic_shared_bytes = row.program->arena_bytes;
      row.max_threads = 1;
      rows.push_back(std::move(row));
    }
    return rows;
  }

 protected:
  Checked run(std::span<const uint64_t> slots, const LaunchOptions& options) const override {
    return run_host(artifact(), slots, options.max_threads, options.cancellation);
  }
};

}  // namespace

Expected<std::unique_ptr<Executable>> load_on_host(std::shared_ptr<const driver::Artifact> artifact) {
  if (Checked here = runs_here(artifact->target); !here) return here.error();
  if (!artifact->host_code)
    return Error(DiagCode::target_unsupported, "", "the artifact has a schedule and no code",
                 "compile without the option 'plan_only'");
  return std::unique_ptr<Executable>(new HostExecutable(std::move(artifact)));
}

}  // namespace tilegen::runtime
