// Loops whose stages overlap.
#include "lower/kernel_lowering.h"

namespace tilegen::lower {

// One stage after the other computes the same.
void KernelLowering::pipelined_loop(const ir::Loop& loop, thread::Block& out, const std::string& origin) {
  serial_loop(loop, out, origin);
}

}  // namespace tilegen::lower
