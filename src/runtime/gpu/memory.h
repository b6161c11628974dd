// Device memory and streams of one device, in the context that contexts.h chooses.
#pragma once

#include <cstddef>

#include "runtime/gpu/driver.h"

namespace tilegen::runtime::gpu {

Expected<void*> allocate(const Driver& driver, const Device& device, size_t bytes);
Checked free(const Driver& driver, const Device& device, void* memory);
Checked copy(const Driver& driver, const Device& device, void* to, const void* from, size_t bytes,
             void* stream);
Checked wait(const Driver& driver, const Device& device, void* stream);

}  // namespace tilegen::runtime::gpu
