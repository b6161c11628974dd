#include "runtime/sim/sim_executable.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "runtime/dim_solver.h"
#include "runtime/kernel_version.h"
#include "runtime/sim/element_places.h"
#include "sim/report.h"
#include "support/diag_codes.h"

namespace tilegen::runtime {
namespace {

// Bytes of each tensor from its first to its last element, strides of either sign.
std::vector<sim::TensorExtent> tensor_extents(const ir::Program& p, std::span<const uint64_t> slots) {
  const DimSolver dims(p, slots);
  std::vector<sim::TensorExtent> extents(p.params.size());
  for (size_t i = 0; i < p.params.size(); ++i) {
    if (p.params[i].kind != ir::Param::Kind::tensor) continue;
    const ir::Buffer& b = p.buffer(p.params[i].buffer);
    int64_t first = 0, last = 0, compact = 1;
    bool empty = false;
    for (size_t d = b.shape.size(); d-- > 0;) {
      const int64_t extent = dims.evaluate(b.shape[d]).value_or(0);
      const int64_t stride = b.strides.empty() ? compact : dims.evaluate(b.strides[d]).value_or(0);
      empty |= extent <= 0;
      (stride < 0 ? first : last) += (extent - 1) * stride;
      compact *= extent;
    }
    const int64_t bytes = ir::dtype_bytes(b.type);
    if (!empty && slots[i] != 0) extents[i] = {first * bytes, (last + 1) * bytes};
  }
  return extents;
}

sim::SimOptions located(const ir::Program& p, sim::SimOptions options) {
  auto places = std::make_shared<std::map<std::string, SourceLocation>>();
  const std::vector<std::string> paths = ir::statement_paths(p);
  for (size_t s = 0; s < paths.size(); ++s) places->emplace(paths[s], p.stmts[s].location);
  for (const ir::Kernel& k : p.kernels) places->emplace(k.name, k.location);
  options.locate = [places](const std::string& path) {
    const auto at = places->find(path);
    return at == places->end() ? SourceLocation() : at->second;
  };
  return options;
}

class SimExecutable final : public Executable {
 public:
  explicit SimExecutable(std::shared_ptr<const driver::Artifact> artifact)
      : Executable(std::move(artifact), MemoryReach{}) {}

  Checked prepare() override { return Unit{}; }

  Expected<std::vector<VersionInfo>> info() const override {
    std::vector<VersionInfo> rows;
    const auto versions = kernel_versions(artifact());
    for (size_t k = 0; k < versions.size(); ++k)
      for (size_t v = 0; v < versions[k].size(); ++v) rows.push_back(version_row(versions[k][v], k, v));
    return rows;
  }

  // The report of the last launch.
  std::string load_log() const override {
    std::lock_guard lock(mutex_);
    return report_;
  }

 protected:
  Checked run(std::span<const uint64_t> slots, const LaunchOptions& options) const override {
    if (options.stream)
      return Error(DiagCode::launch_device, "", "the simulator has no streams, launch.stream is set",
                   "set stream to NULL");
    sim::SimOptions how = artifact().simulation;
    if (options.max_threads > 0) how.workers = options.max_threads;
    how.cancellation = options.cancellation;
    auto results = simulate_artifact(artifact(), slots, how);
    if (!results) return results.error();
    std::string report = sim::report_json(*results);
    {
      std::lock_guard lock(mutex_);
      report_ = std::move(report);
    }
    return findings_error(*results);
  }

 private:
  mutable std::mutex mutex_;
  mutable std::string report_;
};

}  // namespace

Expected<std::vector<sim::SimResult>> simulate_artifact(const driver::Artifact& artifact,
                                                        std::span<const uint64_t> slots,
                                                        const sim::SimOptions& options) {
  const size_t params = artifact.launch_program().params.size();
  if (slots.size() < params) {  // the caller knows those of the text
    const Workspace own(artifact.launch_program(), slots.size());
    std::vector<uint64_t> all(slots.begin(), slots.end());
    all.resize(params);
    Expected<std::vector<sim::SimResult>> results = std::vector<sim::SimResult>();
    const Checked ran = own.in_host_memory(all, /*marked=*/true, [&]() -> Checked {
      results = simulate_artifact(artifact, all, options);
      return results ? Checked(Unit{}) : Checked(results.error());
    });
    return ran ? std::move(results) : ran.error();
  }
  const sim::SimOptions how = located(*artifact.program, options);
  const std::vector<sim::TensorExtent> extents = tensor_extents(artifact.launch_program(), slots);
  std::vector<sim::SimResult> results;
  const auto versions = kernel_versions(artifact);
  for (size_t k = 0; k < versions.size(); ++k) {
    auto version = choose_version(versions[k], artifact.program->kernels[k].name, slots);
    if (!version) return version.error();
    const sim::ElementPlaces places = element_places(artifact, k, (*version)->program(), slots);
    sim::SimOptions of_kernel = how;
    of_kernel.places = &places;
    auto result = sim::simulate((*version)->program(), artifact.target, slots, extents, of_kernel);
    if (!result) return result.error();
    results.push_back(std::move(*result));
    if (!results.back().findings.empty()) break;
  }
  return results;
}

Checked findings_error(const std::vector<sim::SimResult>& results) {
  Error error;
  for (const sim::SimResult& r : results)
    for (const sim::Finding& f : r.findings) {
      Diagnostic d;
      d.code = DiagCode::simulator_finding;
      d.op = f.site.op;
      d.location = f.site.location;
      d.message = std::string(sim::finding_name(f.kind)) + ": " + f.message;
      if (f.count > 1) d.message += " (" + std::to_string(f.count) + " times)";
      d.hint = sim::finding_hint(f.kind);
      d.stage = "simulate";
      error.diagnostics.push_back(std::move(d));
    }
  if (error.diagnostics.empty()) return Unit{};
  return error;
}

Expected<std::unique_ptr<Executable>> load_in_simulator(std::shared_ptr<const driver::Artifact> artifact) {
  if (artifact->kernels.empty())
    return Error(DiagCode::target_unsupported, "", "the artifact has a schedule and no code",
                 "compile without the option 'plan_only'");
  return std::unique_ptr<Executable>(new SimExecutable(std::move(artifact)));
}

}  // namespace tilegen::runtime
