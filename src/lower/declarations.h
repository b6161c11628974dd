// What a thread program declares before its statements: parameters, grid, memories of values.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

void declare_parameters(LoweringContext& k);
// One block variable per dimension of the program's grid. requires: parameters.
void declare_grid(LoweringContext& k);
void declare_values(LoweringContext& k);

}  // namespace tilegen::lower
