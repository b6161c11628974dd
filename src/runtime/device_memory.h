// Memory of a device, the little that tools, samples and tests need. Device numbers are those of devices();
// memory of device 0 is the host's.
#pragma once

#include <cstddef>

#include "support/diagnostic.h"

namespace tilegen::runtime {

// At least 256-byte aligned; null for 0 bytes.
Expected<void*> allocate_memory(size_t device, size_t bytes);
Checked free_memory(size_t device, void* memory);

// From host or device to host or device, after the work of `stream`; returns when the bytes are there.
Checked copy_memory(size_t device, void* to, const void* from, size_t bytes, void* stream);

// Waits for the work of a stream.
Checked wait_for_stream(size_t device, void* stream);

}  // namespace tilegen::runtime
