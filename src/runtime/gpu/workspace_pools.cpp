#include "runtime/gpu/workspace_pools.h"

namespace tilegen::runtime::gpu {

MemoryPool WorkspacePools::of(const Device& device, Result& result) {
  std::lock_guard lock(mutex_);
  MemoryPool& pool = pools_[static_cast<size_t>(device.ordinal)];
  result = kSuccess;
  if (pool) return pool;
  PoolProperties properties;
  properties.device = device.ordinal;
  MemoryPool made = nullptr;
  result = driver_.api().pool_create(&made, &properties);
  uint64_t kept = kKept;
  if (result == kSuccess) result = driver_.api().pool_set(made, kPoolReleaseThreshold, &kept);
  if (result == kSuccess) pool = made;
  return pool;
}

}  // namespace tilegen::runtime::gpu
