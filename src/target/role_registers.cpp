#include "target/role_registers.h"

#include <algorithm>

#include "support/checked.h"

namespace tilegen::target {

namespace {

constexpr int64_t kUnit = 8;          // registers are given out in multiples of it
constexpr int64_t kWarpgroup = 128;

int64_t units(int64_t registers) { return registers / kUnit * kUnit; }

}  // namespace

std::vector<RoleRegisters> role_registers(const Target& t, int64_t computing_threads) {
  std::vector<RoleRegisters> list;
  if (computing_threads + t.warp <= t.max_threads) {
    // ptxas shares the registers among whole warpgroups.
    const int64_t whole = ceil_div(computing_threads + t.warp, kWarpgroup) * kWarpgroup;
    const int64_t share = units(t.registers_per_multiprocessor / whole);
    list.push_back({t.warp, 0, 0, std::min<int64_t>(share, t.registers_per_thread)});
  }
  const int64_t all = computing_threads + kWarpgroup;
  if (computing_threads % kWarpgroup != 0 || all > t.max_threads) return list;
  // Every thread starts with the same number; what the producer gives away the others share.
  const int64_t entry =
      units(std::min<int64_t>(t.registers_per_multiprocessor / all, t.registers_per_thread));
  for (int64_t producer : {40, 24}) {
    const int64_t consumer = std::min(units((entry * all - producer * kWarpgroup) / computing_threads),
                                      units(t.registers_per_thread));
    // What units leave over stays with the producer.
    const int64_t rest = units((entry * all - consumer * computing_threads) / kWarpgroup);
    if (consumer > entry) list.push_back({kWarpgroup, rest, consumer, consumer});
  }
  return list;
}

int64_t most_consumer_registers(const Target& t, int64_t computing_threads) {
  int64_t most = 0;
  for (const RoleRegisters& r : role_registers(t, computing_threads)) most = std::max(most, r.at_most);
  return most;
}

}  // namespace tilegen::target
