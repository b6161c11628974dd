// Copies from global to shared memory that run beside the block's other work.
#include "lower/kernel_lowering.h"

namespace tilegen::lower {

// Emits operand[point] = source for every point as asynchronous copies; false when the plain copy shall be emitted.
bool OpLowering::async_copy_points(int) { return false; }

}  // namespace tilegen::lower
