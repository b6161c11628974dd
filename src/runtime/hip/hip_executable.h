// An AMD artifact on one HIP device: gpu/gpu_executable.h, for code objects (HSACO).
#pragma once

#include "runtime/executable.h"
#include "runtime/hip/driver.h"

namespace tilegen::runtime::hip {

// Refuses: target_unsupported for an artifact without code or with code for another architecture,
// driver_absent where the runtime lacks what the program needs. No function of the runtime is called.
Expected<std::unique_ptr<Executable>> load_on_hip(const Driver& driver,
                                                  std::shared_ptr<const driver::Artifact> artifact,
                                                  int ordinal);
// The same on the machine's runtime.
Expected<std::unique_ptr<Executable>> load_on_hip(std::shared_ptr<const driver::Artifact> artifact,
                                                  int ordinal);

}  // namespace tilegen::runtime::hip
