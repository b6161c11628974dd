// Where the workspaces of launches come from: one pool of memory a device, which the driver hands out and
// takes back in the order of a stream, so that launches on other streams, or in other graphs, never share
// any.
#pragma once

#include <mutex>
#include <vector>

#include "runtime/gpu/driver.h"

namespace tilegen::runtime::gpu {

class WorkspacePools {
 public:
  explicit WorkspacePools(const Driver& driver) : driver_(driver), pools_(driver.devices().size()) {}

  static bool known_to(const Driver& driver, const Device& device) {
    const Entries& api = driver.api();
    return device.memory_pools && api.pool_create && api.pool_set && api.pool_allocate && api.pool_free;
  }

  // Made when first asked for, and never given back: work may still run when the process ends. Null: `result`
  // says why.
  MemoryPool of(const Device& device, Result& result);

  // Memory that no launch has is kept up to here when the process waits for the device; the system has the
  // rest back.
  static constexpr uint64_t kKept = uint64_t{256} << 20;

 private:
  const Driver& driver_;
  std::mutex mutex_;
  std::vector<MemoryPool> pools_;  // by ordinal
};

}  // namespace tilegen::runtime::gpu
