// What an HSACO file says its kernels need (LLVM "User Guide for AMDGPU Backend", "Code Object V5 Metadata":
// a map in MessagePack in the note NT_AMDGPU_METADATA).
//
// requires: bytes from anywhere.
// ensures: one row per kernel, in the order of the metadata.
// why here: what loads code tells its needs before it is loaded, and those that the runtime does not tell.
// refuses (backend_failure): what is no such file; a note that is missing or ends early.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tilegen::object {

struct KernelResources {
  std::string name;
  int64_t vector_registers = 0;        // of a lane, accumulation registers among them
  int64_t accumulation_registers = 0;  // of a lane
  int64_t scalar_registers = 0;        // of a wave
  int64_t scratch_bytes = 0;           // of a lane
  int64_t shared_bytes = 0;            // of a block
};

Expected<std::vector<KernelResources>> hsaco_resources(std::string_view hsaco);

}  // namespace tilegen::object
