// Runs an artifact on the first CUDA device: host memory goes there between marked zones, and comes back.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "guarded_memory.h"
#include "runtime/executable.h"

namespace tilegen::differential {

// Whether this process sees a CUDA device.
bool has_cuda_device();

// What a launch runs: program, target, sizes, and each kernel with its blocks and threads.
std::string describe_launch(const driver::Artifact& artifact, std::span<const uint64_t> slots);

// An artifact loaded on the device, for any number of launches.
class CudaRun {
 public:
  explicit CudaRun(std::shared_ptr<const driver::Artifact> artifact);

  // `slots` as for the host, one per parameter; those of tensors hold addresses of `memory`, which holds the
  // results afterwards. Tensors begin `shift` elements after an aligned address. An error text, or empty. A
  // launch that does not end takes the process with it (launch_watch.h).
  std::string launch(std::span<const uint64_t> slots, std::vector<GuardedMemory>& memory, int64_t shift);
  // What the last launch told.
  const std::string& lines() const { return lines_; }

 private:
  std::shared_ptr<const driver::Artifact> artifact_;
  std::unique_ptr<runtime::Executable> executable_;
  std::string failed_, lines_;
};

}  // namespace tilegen::differential
