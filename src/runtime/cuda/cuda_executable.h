// An NVIDIA artifact on one CUDA device: gpu/gpu_executable.h, for code that CUDA's driver compiles.
#pragma once

#include "runtime/cuda/driver.h"
#include "runtime/executable.h"

namespace tilegen::runtime::cuda {

// Refuses: target_unsupported for an artifact without code, driver_absent where the driver lacks what the
// code needs. No driver function is called.
Expected<std::unique_ptr<Executable>> load_on_cuda(const Driver& driver,
                                                   std::shared_ptr<const driver::Artifact> artifact,
                                                   int ordinal);
// The same on the machine's driver.
Expected<std::unique_ptr<Executable>> load_on_cuda(std::shared_ptr<const driver::Artifact> artifact,
                                                   int ordinal);

}  // namespace tilegen::runtime::cuda
