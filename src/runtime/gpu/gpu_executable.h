// An artifact on one GPU, through its vendor's driver.
//
// The code is loaded in a context when that is first needed there: by prepare(), or by the first launch.
// Which context: contexts.h. Loading happens once per context however many threads ask; a launch after it
// looks the context up in a list that only grows.
#pragma once

#include "runtime/executable.h"
#include "runtime/gpu/driver.h"

namespace tilegen::runtime::gpu {

// Refuses: target_unsupported for an artifact without code, driver_absent where the driver lacks what the
// code needs, or has no pools for its workspaces. No driver function is called.
Expected<std::unique_ptr<Executable>> load_on_gpu(const Driver& driver,
                                                  std::shared_ptr<const driver::Artifact> artifact,
                                                  int ordinal);

}  // namespace tilegen::runtime::gpu
