// Bounds on what a loop may ask for, whoever writes the program.
#pragma once

#include <cstdint>

namespace tilegen::ir {

constexpr int64_t kMaxStages = 64;  // of a pipelined loop

}  // namespace tilegen::ir
