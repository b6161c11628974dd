// Sizes of the dims of a launch.
#pragma once

#include <vector>

#include "executors.h"

namespace tilegen::differential {

// The value nearest to `wanted` that a dim's facts allow.
int64_t allowed(const ir::Var& v, int64_t wanted);

// Each dim near the next of the sizes: other sizes for other dims, so that mixing them up shows. Dims that
// count whole blocks or iterations are 7 at most: more repeat what those do.
Launch launch_near(const ir::Program& p, const std::vector<int64_t>& sizes);

}  // namespace tilegen::differential
