// A coordinate for the copy engine, which takes 32 bits of it.
#pragma once

#include "arith/context.h"

namespace tilegen::lower {

// `at`, or where that may not fit, a number outside of the tensor wherever `at` is. The launch has found the
// extent to be at
// most thread::kMaxTensorExtent.
ir::ExprId tensor_coordinate(arith::Context& ctx, ir::ExprId at, ir::ExprId extent);

}  // namespace tilegen::lower
