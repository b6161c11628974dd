// Reading a code object: its image in memory and what its kernels need.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "code_object.h"

namespace tilegen::amdemu {

struct KernelDescriptor {
  uint32_t rsrc1 = 0, rsrc2 = 0;  // compute_pgm_rsrc1, compute_pgm_rsrc2
  uint16_t properties = 0;        // kernel_code_properties
  uint16_t preload = 0;           // kernarg_preload
};

struct LoadedObject {
  std::string cpu;
  std::string image;  // segments at their addresses, from 0
  uint64_t code_begin = 0, code_end = 0;
  std::map<std::string, KernelFacts> kernels;
  std::map<std::string, KernelDescriptor> descriptors;
};

// Throws std::runtime_error with what is wrong.
LoadedObject read_code_object(std::string_view bytes);

}  // namespace tilegen::amdemu
