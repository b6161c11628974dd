// Blocks that a multiprocessor's registers have room for.
#pragma once

#include "target/target.h"

namespace tilegen::target {

// Of `threads` that have so many registers each. A warp has all of its registers in one of the units that
// issue instructions, and they are given out in whole units (CUDA occupancy calculator: warps limited by
// registers are a multiple of four; AMD CDNA3 ISA, 3.6: of one SIMD): nine warps of 104 registers fit once,
// not twice.
int64_t blocks_by_registers(const Target& t, int64_t registers, int64_t threads);

}  // namespace tilegen::target
