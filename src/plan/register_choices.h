// A limit that planning keeps to and lowering relies on.
#pragma once

#include <cstdint>

namespace tilegen::plan {

// On GPUs a register chosen at run time is a choice among all that the thread has of a value; beyond this
// many a trip through memory is better.
inline constexpr int64_t kMaxRegisterChoices = 64;

}  // namespace tilegen::plan
