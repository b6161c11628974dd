// Transaction barriers: arrivals, announced bytes and phases, and warps that wait for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/bytecode.h"
#include "sim/ordering.h"

namespace tilegen::sim {

struct ClusterRun;
struct Warp;

// A transaction barrier as the simulator keeps it.
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

// Number in its array of the barrier `index` of a block of the cluster; nothing, and a finding, where there
// is none.
std::optional<int64_t> transaction(ClusterRun& run, Warp& w, const Step& s, int barriers, int64_t block,
                                   int64_t index);
void transaction_arrive(ClusterRun& run, Warp& w, const Step& s);
void transaction_wait(ClusterRun& run, Warp& w, const Step& s);
void transaction_test(ClusterRun& run, Warp& w, const Step& s);
// Completes the phase when nothing is missing.
void advance(ClusterRun& run, int barriers, int64_t index);
std::string transaction_text(const ClusterRun& run, int barriers, int64_t index);

// At the end of a block: what the copy engine may still do to its shared memory, and whether one of its
// threads knows of what others arrive at.
void check_unfinished(ClusterRun& run);
void check_reached(ClusterRun& run);

}  // namespace tilegen::sim
