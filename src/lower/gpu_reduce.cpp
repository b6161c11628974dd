// Reductions of a block of many threads.
#include "lower/kernel_lowering.h"

namespace tilegen::lower {

void OpLowering::reduce_in_block(int, int, ir::ReduceKind, int, bool) {
  k_.fail(DiagCode::target_unsupported, op_.path, "reductions for " + k_.target_.name + " are not generated", "");
}

}  // namespace tilegen::lower
