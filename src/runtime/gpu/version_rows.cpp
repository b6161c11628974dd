#include "runtime/gpu/version_rows.h"

#include <algorithm>
#include <optional>

#include "object/hsaco_resources.h"
#include "target/resident_blocks.h"

namespace tilegen::runtime::gpu {
namespace {

// From the device's limits, and by registers where the code tells them.
int estimated_blocks(const Device& device, const target::Target& target, const VersionInfo& row) {
  const thread::ThreadProgram& program = *row.program;
  const int64_t warps = std::max<int64_t>(1, (program.threads + device.warp - 1) / device.warp);
  const int64_t threads = warps * device.warp;
  const int64_t shared = program.arena_bytes + device.reserved_shared;
  int64_t blocks =
      std::min<int64_t>(device.blocks_per_multiprocessor, device.threads_per_multiprocessor / threads);
  if (shared > 0) blocks = std::min<int64_t>(blocks, device.shared_per_multiprocessor / shared);
  if (row.registers > 0)
    blocks = std::min(blocks, target::blocks_by_registers(target, row.registers, threads));
  return static_cast<int>(blocks);
}

Checked measure(const Driver& driver, const LoadedModule& module, const LoadedFunction& f, VersionInfo& row) {
  row.measured = true;
  row.registers = f.registers;
  row.local_bytes = f.local_bytes;
  row.static_shared_bytes = f.static_shared;
  row.max_threads = f.max_threads;
  const Result result = driver.api().occupancy(&row.blocks_per_multiprocessor, f.function,
                                               static_cast<int>(row.program->threads),
                                               static_cast<size_t>(row.dynamic_shared_bytes));
  if (result == kSuccess) return Unit{};
  return call_failed(driver, &module.state(), result,
                     "asking for the occupancy of '" + row.program->name + "'", row.program->name);
}

// What the code itself tells; null: nothing of this kernel.
const object::KernelResources* resources_of(const std::vector<object::KernelResources>& all,
                                            const std::string& kernel) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const object::KernelResources& r) { return r.name == kernel; });
  return found == all.end() ? nullptr : &*found;
}

void take_resources(const object::KernelResources& r, VersionInfo& row) {
  row.registers = static_cast<int>(r.vector_registers);
  row.accumulation_registers = static_cast<int>(r.accumulation_registers);
  row.scalar_registers = static_cast<int>(r.scalar_registers);
  row.local_bytes = r.scratch_bytes;
}

}  // namespace

Expected<std::vector<VersionInfo>> version_rows(const Driver& driver, const Device& device,
                                                const driver::Artifact& artifact,
                                                const std::vector<std::vector<KernelVersion>>& versions,
                                                const LoadedModule* module) {
  if (module && !driver.alive(module->state())) module = nullptr;  // the tables are left
  std::optional<ContextScope> scope;
  if (module) {
    scope.emplace(driver, module->state());
    if (scope->result() != kSuccess)
      return call_failed(driver, &module->state(), scope->result(), "switching to " + device.text());
  }
  std::vector<object::KernelResources> resources;
  if (artifact.target.code == target::CodeFormat::hsaco) {
    auto read = object::hsaco_resources(artifact.code);
    if (!read) return read.error();
    resources = std::move(*read);
  }
  std::vector<VersionInfo> rows;
  for (size_t k = 0; k < versions.size(); ++k)
    for (size_t v = 0; v < versions[k].size(); ++v) {
      VersionInfo row = version_row(versions[k][v], k, v);
      if (!driver.names().dynamic_shared) std::swap(row.dynamic_shared_bytes, row.static_shared_bytes);
      if (const auto* needs = resources_of(resources, row.program->name)) take_resources(*needs, row);
      row.blocks_per_multiprocessor = estimated_blocks(device, artifact.target, row);
      if (module)
        if (Checked ok = measure(driver, *module, module->functions()[artifact.versions[k].first + v], row);
            !ok)
          return ok.error();
      rows.push_back(std::move(row));
    }
  return rows;
}

}  // namespace tilegen::runtime::gpu
