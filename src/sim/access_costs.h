// Transactions of one warp-wide access, from the addresses of its active lanes.
#pragma once

#include "sim/bytecode.h"

namespace tilegen::sim {

struct AccessCost {
  int64_t taken = 0, least = 0;
};

// Wavefronts of a shared access as layout/bank_model.h counts them: accesses of 8 and 16
// bytes in halves and quarters of the warp. `lanes` has one bit per active lane; addresses are byte offsets.
AccessCost shared_cost(const int64_t* offsets, LaneMask lanes, int bytes);
// Sectors of a global access.
AccessCost global_cost(const int64_t* addresses, LaneMask lanes, int bytes);

}  // namespace tilegen::sim
