// What the schedule has the code rely on, as guards of the kernel.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// requires: parameters are declared.
void declare_assumptions(LoweringContext& k);

}  // namespace tilegen::lower
