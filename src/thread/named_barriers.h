// Hardware barriers of a block that only some of its threads meet at. They have numbers from 1, in the order
// in which lowering asks for them (ThreadProgram::named_barrier); 0 is that of all threads.
#pragma once

#include <cstdint>

namespace tilegen::thread {

enum class BarrierUse : uint8_t {
  role,       // all threads of the computing role
  warpgroup,  // those of one warpgroup of it
  warps,      // `count` warps from `first` on
  program,    // that the program names: array `first`, element `count`; any may arrive and wait
  order,      // turns of the warpgroups' products (ping-pong): the one that waits, and the one before it
};

struct NamedBarrier {
  BarrierUse use = BarrierUse::role;
  int64_t first = 0;  // warpgroup, or warp
  int64_t count = 0;  // of warps
  bool operator==(const NamedBarrier&) const = default;
};

// Warpgroups that may take turns on a machine of so many barriers: each has two, all have two more.
constexpr int64_t max_ordered_warpgroups(int64_t barriers) { return (barriers - 2) / 2; }

}  // namespace tilegen::thread
