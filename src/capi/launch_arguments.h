// tl_arg and DLPack descriptions to checked parameter slots.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"
#include "support/diagnostic.h"
#include "tilelang.h"

namespace tilegen::capi {

Expected<std::vector<uint64_t>> bind_launch_arguments(const ir::Program& program, const tl_arg* args,
                                                      size_t count);
Expected<std::vector<uint64_t>> bind_tensors(const ir::Program& program, const DLTensor* const* tensors,
                                             size_t count);

}  // namespace tilegen::capi
