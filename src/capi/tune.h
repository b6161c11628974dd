// The configurations of a caller's program, in the order of the cost model.
#pragma once

#include "capi/objects.h"
#include "tune/rank.h"

namespace tilegen::capi {

// tune::rank of the text that `program` was made from; without compile-time parameters it is the one.
Expected<std::vector<tune::Configuration>> rank_configurations(const tl_context& context,
                                                               const tl_program& program,
                                                               const target::Target& target,
                                                               const driver::CompileOptions& options);

}  // namespace tilegen::capi
