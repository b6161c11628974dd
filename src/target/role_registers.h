// How the registers of a multiprocessor can be shared between the computing threads of a block and warps that
// only issue copies (PTX ISA, "setmaxnreg"; CUDA: registers are given out in units of 8 a thread).
#pragma once

#include <vector>

#include "target/target.h"

namespace tilegen::target {

struct RoleRegisters {
  int64_t producer_threads = 32;
  // Of a thread; 0: as launched, which is `at_most` for every thread.
  int64_t producer = 0, consumer = 0;
  int64_t at_most = 0;  // what a computing thread can have
};

// The ways, preferred first: one warp beside the computing threads, or a warpgroup that gives registers away.
// Empty where the block has no room for more threads.
std::vector<RoleRegisters> role_registers(const Target& t, int64_t computing_threads);

// What a computing thread can have at most, by any of them.
int64_t most_consumer_registers(const Target& t, int64_t computing_threads);

}  // namespace tilegen::target
