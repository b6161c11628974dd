// What a condition says of some variables alone, for accesses that are told apart by these.
#pragma once

#include <functional>

#include "arith/context.h"

namespace tilegen::sync {

// A condition of known variables that holds wherever `condition` does; invalid where there is none to tell.
// Others count with their ranges: with d <= 64, v * 16 + 48 < d implies v * 16 + 48 < 64.
ir::ExprId implied_condition(arith::Context& ctx, ir::ExprId condition,
                             const std::function<bool(ir::VarId)>& known);

}  // namespace tilegen::sync
