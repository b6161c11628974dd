// Tiles that several blocks read at about the same time: device memory is asked for them again before the L2
// has them, but for those that the copy engine brings to all blocks of a cluster at once.
#pragma once

#include <vector>

#include "cost/op_work.h"

namespace tilegen::cost {

// Of loads by the copy engine, without what lies outside of tensors.
void count_shared_reads(const PlannedKernel& k, const ir::Kernel& kernel, std::vector<OpWork>& works);

}  // namespace tilegen::cost
