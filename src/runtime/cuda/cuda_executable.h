// An NVIDIA artifact on one CUDA device.
//
// The code is loaded in a context when that is first needed there: by prepare(), or by the first launch.
// Which
// context: contexts.h. Loading happens once per context however many threads ask; a launch after it looks
// the context up in a list that only grows.
#pragma once

#include "runtime/cuda/driver.h"
#include "runtime/executable.h"

namespace tilegen::runtime::cuda {

// Refuses: target_unsupported for an artifact without code. No driver function is called.
Expected<std::unique_ptr<Executable>> load_on_cuda(const Driver& driver,
                                                   std::shared_ptr<const driver::Artifact> artifact,
                                                   int ordinal);
// The same on the machine's driver.
Expected<std::unique_ptr<Executable>> load_on_cuda(std::shared_ptr<const driver::Artifact> artifact,
                                                   int ordinal);

}  // namespace tilegen::runtime::cuda
