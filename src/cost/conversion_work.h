// Work of values that an op has in another form than they are held in.
//
// requires: a kernel and the schedule that was planned for it on the target.
// ensures: moves between registers, shuffles and ways through shared memory, before the op and after it, are
//   in `out`.
// why here: the ways follow from the layouts, which are decided.
// refuses: nothing.
#pragma once

#include "cost/op_work.h"

namespace tilegen::cost {

void count_conversions(const PlannedKernel& k, const analysis::KernelOp& op, OpWork& out);

}  // namespace tilegen::cost
