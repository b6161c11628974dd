#include "runtime/gpu/kernel_launch.h"

#include <algorithm>

#include "support/diag_codes.h"

namespace tilegen::runtime::gpu {
namespace {

// An older driver has no launches with attributes: it runs a dependent kernel after the one before, which is
// right, too.
inline Result call(const Driver& driver, Stream stream, const KernelLaunch& launch, void** pointers,
                   void** extra) {
  const KernelVersion::Traits& traits = launch.version->traits();
  const LoadedFunction& f = *launch.function;
  const bool dependent = traits.dependent && driver.api().launch_with;
  if (!dependent && traits.cluster == 1)
    return driver.api().launch(f.function, launch.grid[0], launch.grid[1], launch.grid[2], traits.threads, 1,
                               1, f.dynamic_shared, stream, pointers, extra);
  LaunchAttribute attributes[2];
  uint32_t count = 0;
  if (dependent) attributes[count++] = {kLaunchDependent, 0, {1}};
  if (traits.cluster > 1) attributes[count++] = {kLaunchCluster, 0, {traits.cluster, 1, 1}};
  uint32_t shared = f.dynamic_shared;
  if (dependent && !f.few_blocks.empty()) {
    const int64_t blocks = int64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
    for (const SharedOfFewBlocks& few : f.few_blocks)
      if (blocks <= few.blocks) {
        shared = few.bytes;
        break;
      }
  }
  const LaunchConfig config = {{launch.grid[0], launch.grid[1], launch.grid[2]},
                               {traits.threads, 1, 1},
                               shared,
                               stream,
                               attributes,
                               count};
  return driver.api().launch_with(&config, f.function, pointers, extra);
}

// Parameters that are more than slots, one pointer each.
Result queue_with_pointers(const Driver& driver, Stream stream, const KernelLaunch& launch) {
  const KernelVersion::Traits& traits = launch.version->traits();
  void* pointers[kMaxParameters];
  void** end = point_to_parameters(traits, launch.parameters, pointers);
  Pointer counter = 0;
  if (traits.dynamic_tiles) {
    counter = launch.function->counters->of_launch(stream);
    *end = &counter;
  }
  return call(driver, stream, launch, pointers, nullptr);
}

}  // namespace

std::array<int64_t, 3> most_blocks(const Device& device, const thread::ThreadProgram& program) {
  constexpr int64_t kPoints = thread::kMaxPersistentPoints;
  if (program.launched_var.valid()) return {kPoints, kPoints, kPoints};
  int64_t x = device.max_grid[0];
  if (device.max_grid_threads > 0) x = std::min(x, device.max_grid_threads / program.threads);
  return {x, device.max_grid[1], device.max_grid[2]};
}

// The limits of a device are such that a grid within them has a number of blocks that fits 64 bits.
[[gnu::hot]] bool find_blocks(std::span<const uint64_t> slots, KernelLaunch& launch) {
  const KernelVersion::Traits& traits = launch.version->traits();
  int64_t extents[3];
  if (!launch.version->find_extents(slots, extents)) {
    const auto found = launch.version->grid(slots);
    if (!found) return false;
    std::copy(found->extents.begin(), found->extents.end(), extents);
  }
  bool fits = true;
  launch.empty = false;
  launch.grid[1] = launch.grid[2] = 1;
  for (size_t d = 0; d < traits.rank; ++d) {  // x is the last extent
    int64_t extent = extents[traits.rank - 1u - d];
    launch.empty |= extent <= 0;
    fits &= extent <= launch.function->most_blocks[d];
    if (traits.persistent) extent = std::min(extent, launch.function->resident_blocks);
    launch.grid[d] = static_cast<unsigned>(extent);
  }
  return fits || launch.empty;
}

[[gnu::cold]] Error launch_refusal(const Device& device, std::span<const uint64_t> slots,
                                   const KernelVersion& version) {
  auto grid = version.grid(slots);
  if (!grid) return grid.error();
  const std::array<int64_t, 3> most = most_blocks(device, version.program());
  size_t d = 0;  // the first that is too large
  const size_t rank = version.traits().rank;
  while (d + 1 < rank && grid->extents[rank - 1 - d] <= most[d]) ++d;
  return Error(DiagCode::launch_limit, version.program().name,
               "the grid has " + std::to_string(grid->extents[rank - 1 - d]) + " blocks along " + "xyz"[d] +
                   ", " + device.text() + " launches at most " + std::to_string(most[d]),
               "launch with smaller dimensions, or use larger tiles");
}

[[gnu::hot]] Result queue(const Driver& driver, std::span<const uint64_t> slots, Stream stream,
                          const KernelLaunch& launch) {
  const KernelVersion::Traits& traits = launch.version->traits();
  if (!traits.only_slots || traits.dynamic_tiles) return queue_with_pointers(driver, stream, launch);
  size_t bytes = slots.size_bytes();
  void* extra[] = {kLaunchParamBuffer, const_cast<uint64_t*>(slots.data()), kLaunchParamBufferSize, &bytes,
                   reinterpret_cast<void*>(driver.names().launch_param_end)};
  return call(driver, stream, launch, nullptr, extra);
}

}  // namespace tilegen::runtime::gpu
