// What the kinds of reductions mean, one value after the other.
#pragma once

#include "ir/expr.h"
#include "ir/tile_op.h"

namespace tilegen::ops {

// What no element comes to.
ir::ScalarValue reduction_start(ir::ReduceKind kind, ir::DType type);
ir::ScalarValue combined(ir::ReduceKind kind, ir::DType type, ir::ScalarValue acc, ir::ScalarValue v);

}  // namespace tilegen::ops
