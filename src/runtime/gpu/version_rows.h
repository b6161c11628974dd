// What a loaded artifact tells of its versions: from the device where the code is loaded, else from tables.
#pragma once

#include <vector>

#include "runtime/executable.h"
#include "runtime/gpu/loaded_module.h"
#include "runtime/kernel_version.h"

namespace tilegen::runtime::gpu {

// One row per version. `module` is null before a load.
Expected<std::vector<VersionInfo>> version_rows(const Driver& driver, const Device& device,
                                                const driver::Artifact& artifact,
                                                const std::vector<std::vector<KernelVersion>>& versions,
                                                const LoadedModule* module);

}  // namespace tilegen::runtime::gpu
