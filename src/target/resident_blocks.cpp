#include "target/resident_blocks.h"

#include <algorithm>

#include "support/checked.h"

namespace tilegen::target {

int64_t blocks_by_registers(const Target& t, int64_t registers, int64_t threads) {
  const int64_t unit = std::max<int64_t>(1, t.register_unit);
  const auto schedulers = std::max<int64_t>(1, static_cast<int64_t>(t.schedulers));
  const int64_t of_warp = std::max<int64_t>(1, ceil_div(registers, unit)) * unit * t.warp;
  const int64_t warps = t.registers_per_multiprocessor / schedulers / of_warp * schedulers;
  return warps / std::max<int64_t>(1, ceil_div(threads, int64_t{t.warp}));
}

}  // namespace tilegen::target
