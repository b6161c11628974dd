// Slots of a shared tile: copies of it that are alive at once.
#pragma once

#include "ir/dtype.h"
#include "plan/schedule.h"

namespace tilegen::plan {

inline constexpr int64_t kBankBytes = 128;  // of one row of all banks

// Elements from one slot of a shared value to the next: each begins at a multiple of 128 bytes, where the
// copy engine may put a box and the banks begin.
int64_t slot_elements(const ValuePlan& v, ir::DType type);

}  // namespace tilegen::plan
