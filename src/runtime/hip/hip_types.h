// The part of HIP's interface that CUDA does not have, or has with other numbers, declared from its
// documentation.
#pragma once

#include <cstring>
#include <string>

#include "runtime/gpu/gpu_types.h"

namespace tilegen::runtime::hip {

enum : gpu::Result {
  kHipInvalidConfiguration = 9,
  kHipInvalidKernelFile = 218,
  kHipSharedObjectInitFailed = 303,
};

enum HipDeviceAttribute : int32_t {
  kMaxBlocksPerMultiprocessor = 25,
  kMaxGridX = 29,
  kMaxGridY = 30,
  kMaxGridZ = 31,
  kMaxThreadsPerBlock = 56,
  kMaxThreadsPerMultiprocessor = 57,
  kMultiprocessors = 63,
  kMaxSharedPerBlock = 74,
  kWarpSize = 87,
  kMemoryPoolsSupported = 88,
  kMaxSharedPerMultiprocessor = 10002,
};

enum HipCopyKind : int32_t { kCopyByAddresses = 4 };  // hipMemcpyDefault: told by the addresses

// hipDeviceProp_t as hipGetDevicePropertiesR0600 fills it, of which the name of the architecture is read: no
// attribute has it.
struct HipDeviceProperties {
  alignas(8) char bytes[1472];

  std::string architecture() const {  // "gfx942:sramecc+:xnack-"
    constexpr size_t kAt = 1160, kBytes = 256;
    return {bytes + kAt, strnlen(bytes + kAt, kBytes)};
  }
};

}  // namespace tilegen::runtime::hip
