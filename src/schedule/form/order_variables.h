// Variables of parallel loops in the order of the dims that they walk.
//
//   parallel j, i in 64, 128 { t[i, j] = s[i, j] }  ->  parallel i, j in 128, 64 { t[i, j] = s[i, j] }
//
// requires: a checked program. ensures: the same meaning, iterations of a parallel loop are independent.
//   Variables of a loop stand in the order of the dims of what its first store writes, those that name no
//   element first.
// why here: layouts of iterations are made and named in the order of a loop's variables.
// refuses: nothing.
#pragma once

#include "ir/program.h"

namespace tilegen::schedule {

// Whether there was another order.
bool order_variables(ir::Program& p);

}  // namespace tilegen::schedule
