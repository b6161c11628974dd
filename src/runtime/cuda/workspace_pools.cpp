#include "runtime/cuda/workspace_pools.h"

namespace tilegen::runtime::cuda {

CuMemoryPool WorkspacePools::of(const Device& device, CuResult& result) {
  std::lock_guard lock(mutex_);
  CuMemoryPool& pool = pools_[static_cast<size_t>(device.ordinal)];
  result = kCuSuccess;
  if (pool) return pool;
  CuPoolProperties properties;
  properties.device = device.ordinal;
  CuMemoryPool made = nullptr;
  result = driver_.api().pool_create(&made, &properties);
  uint64_t kept = kKept;
  if (result == kCuSuccess) result = driver_.api().pool_set(made, kPoolReleaseThreshold, &kept);
  if (result == kCuSuccess) pool = made;
  return pool;
}

}  // namespace tilegen::runtime::cuda
