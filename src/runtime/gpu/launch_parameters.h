// The parameters of kernels with more than slots: after them divisors and their reciprocals, then tensor
// maps, as the kernel expects them in one block.
//
// requires: a driver that makes tensor maps, where a kernel has some. ensures: no lock, no allocation; a
// thread that launches the same version with the same slots again finds the block ready.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/gpu/driver.h"
#include "runtime/kernel_version.h"

namespace tilegen::runtime::gpu {

constexpr size_t kMaxParameterBytes = 4096;

constexpr size_t kMaxParameters = kMaxParameterBytes / sizeof(uint64_t);

// Where the parameters are in the block, one pointer each, and where the next one's would be: a kernel's own
// layout of aligned parameters is the driver's to know.
void** point_to_parameters(const KernelVersion::Traits& traits, const void* block, void** pointers);

// Bytes of a kernel's parameters: its slots and divisors, then its maps aligned to 64, then its counter's
// address.
size_t parameter_bytes(const thread::ThreadProgram& program);

// The block of a launch, in memory of this thread that its next call may overwrite. Null where the copy
// engine cannot describe the tensors.
const void* make_parameters(const Driver& driver, const KernelVersion& version,
                            std::span<const uint64_t> slots);

}  // namespace tilegen::runtime::gpu
