// How often an expression repeats itself as one of its variables counts.
#pragma once

#include <cstdint>
#include <optional>

#include "arith/context.h"

namespace tilegen::arith {

// A number of steps of `var` after which the expression has the same value again, whatever the others are, as
// long as var keeps to its bounds; 1 where it does not depend on var. Nothing where none is known, or it is
// more than `most`.
std::optional<int64_t> period_of(Context& ctx, ir::ExprId e, ir::VarId var, int64_t most);

}  // namespace tilegen::arith
