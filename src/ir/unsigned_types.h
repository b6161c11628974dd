#pragma once

#include "ir/dtype.h"

namespace tilegen::ir {

// The unsigned integers of so many bits: 2, 4, 8, 16, 32 or 64.
DType unsigned_of(int bits);

}  // namespace tilegen::ir
