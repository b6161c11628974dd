// Figures of the machine that a thread program runs on, as far as the meaning of statements and the checks of
// programs depend on them. The values here are those of a thread by itself; a device's stand in the tables of
// its target, and lowering hands them to the program.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tilegen::thread {

struct Machine {
  int warp = 1;       // lanes in lock-step
  int warpgroup = 1;  // threads that a warpgroup's instructions take, consecutive
  int named_barriers = 0;
  int max_cluster = 1;  // blocks
  // Asynchronous copies of a warp's lanes go to shared memory side by side, in the order of lanes.
  bool copies_in_lane_order = false;
  // Registers have 32 bits.
  int64_t registers_per_multiprocessor = 0;
  int registers_per_thread = 0;                        // that code may use; 0: local memory is addressable
  int register_unit = 1;                               // a thread is given a multiple of it
  int min_role_registers = 0, max_role_registers = 0;  // that a role may ask for

  // Of a thread, where a multiprocessor has `threads` of them.
  int64_t registers_at_launch(int64_t threads) const {
    const int64_t share = registers_per_multiprocessor / std::max<int64_t>(threads, 1);
    return std::min<int64_t>(share / register_unit * register_unit, max_role_registers);
  }
};

}  // namespace tilegen::thread
