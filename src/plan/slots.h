// Slots of a shared tile: copies of it that are alive at once.
#pragma once

#include "ir/dtype.h"
#include "plan/schedule.h"

namespace tilegen::plan {

// Elements from one slot of a shared value to the next: each begins at a multiple of `row_bytes`, where the
// banks of shared memory begin; the copy engine puts no box elsewhere.
int64_t slot_elements(const ValuePlan& v, ir::DType type, int64_t row_bytes);

}  // namespace tilegen::plan
