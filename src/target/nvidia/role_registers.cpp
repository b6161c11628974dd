// Registers move between the warpgroups of a block by setmaxnreg (PTX ISA, "setmaxnreg").
#include <algorithm>

#include "support/checked.h"
#include "target/nvidia/nvidia.h"

namespace tilegen::target::nvidia {

std::vector<RoleRegisters> role_registers(const Target& t, int64_t computing_threads, int64_t producers) {
  const auto units = [&](int64_t registers) { return registers / t.register_unit * t.register_unit; };
  const int64_t warpgroup = t.warpgroup;
  std::vector<RoleRegisters> list;
  if (computing_threads + producers * t.warp <= t.max_threads) {
    // ptxas shares the registers among whole warpgroups.
    const int64_t whole = ceil_div(computing_threads + producers * t.warp, warpgroup) * warpgroup;
    const int64_t share = units(t.registers_per_multiprocessor / whole);
    list.push_back({t.warp, 0, 0, std::min<int64_t>(share, t.registers_per_thread)});
  }
  const int64_t others = producers * warpgroup, all = computing_threads + others;
  if (computing_threads % warpgroup != 0 || all > t.max_threads) return list;
  // Every thread starts with the same number; what producers give away the others share.
  const int64_t entry =
      units(std::min<int64_t>(t.registers_per_multiprocessor / all, t.registers_per_thread));
  for (int64_t producer : {int64_t{40}, int64_t{t.min_role_registers}}) {
    const int64_t consumer =
        std::min(units((entry * all - producer * others) / computing_threads), units(t.registers_per_thread));
    // What units leave over stays with the producers.
    const int64_t rest = units((entry * all - consumer * computing_threads) / others);
    if (consumer > entry) list.push_back({warpgroup, rest, consumer, consumer});
  }
  return list;
}

}  // namespace tilegen::target::nvidia
