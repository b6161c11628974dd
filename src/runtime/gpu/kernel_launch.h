// One kernel of a launch: how many blocks its version has, and the driver's call that queues them.
//
// requires: the context of `function` is current. ensures: no lock, no allocation.
#pragma once

#include <span>

#include "runtime/gpu/launch_parameters.h"
#include "runtime/gpu/loaded_module.h"
#include "runtime/kernel_version.h"

namespace tilegen::runtime::gpu {

struct KernelLaunch {
  const KernelVersion* version = nullptr;
  const LoadedFunction* function = nullptr;
  const void* parameters = nullptr;  // the slots themselves, or a block after which they stand
  unsigned grid[3] = {1, 1, 1};
  bool empty = false;  // no blocks: nothing to queue
};

// Blocks along x, y and z. False: launch_refusal says why.
bool find_blocks(std::span<const uint64_t> slots, KernelLaunch& launch);
Error launch_refusal(const Device& device, std::span<const uint64_t> slots, const KernelVersion& version);

Result queue(const Driver& driver, std::span<const uint64_t> slots, Stream stream,
             const KernelLaunch& launch);

}  // namespace tilegen::runtime::gpu
