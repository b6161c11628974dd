// A transaction barrier as the simulator keeps it.
#pragma once

#include <cstdint>

#include "sim/ordering.h"

namespace tilegen::sim {

struct TransactionState {
  int64_t phase = 0;                // how many have completed
  int64_t arrived = 0;              // in this phase
  int64_t to_land = 0;              // announced and not landed; below 0 when more landed than was announced
  int64_t unclaimed = 0;            // announced in this phase, and no copy was issued for it
  uint32_t loaded = 0, waited = 0;  // epochs: of the newest copy, and the newest that someone waited for
  uint32_t load_access = 0xffffffffu;
  // What was released to the phases that have completed, and to this one.
  Ordering::Clock completed, current;

  bool passes(int64_t parity) const { return (phase & 1) != (parity & 1); }
};

}  // namespace tilegen::sim
