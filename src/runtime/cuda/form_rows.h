// What a loaded artifact tells of its forms: from the device where the code is loaded, else from tables.
#pragma once

#include <vector>

#include "runtime/cuda/loaded_module.h"
#include "runtime/executable.h"
#include "runtime/kernel_form.h"

namespace tilegen::runtime::cuda {

// One row per form. `module` is null before a load.
Expected<std::vector<FormInfo>> form_rows(const Driver& driver, const Device& device,
                                          const driver::Artifact& artifact,
                                          const std::vector<std::vector<KernelForm>>& forms,
                                          const LoadedModule* module);

}  // namespace tilegen::runtime::cuda
