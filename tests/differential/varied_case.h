// Programs of tests/files for other sizes: random facts of each dim, extents of tiles, threads of a block and
// stages.
#pragma once

#include "mutated_case.h"

namespace tilegen::differential {

// A function of the seed and of the programs of tests/files.
MutatedCase varied_case(uint64_t seed);

}  // namespace tilegen::differential
