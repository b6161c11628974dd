// Dims for which the loops of a program run so many times: what a walk with concrete numbers launches.
#pragma once

#include <vector>

#include "thread/role_program.h"

namespace tilegen::thread {

// Values of dims, scalars, data, the block index (0) and the number of launched blocks such that a persistent
// block walks `points` points, and all other loops whose length follows dims, or is read from a tensor, run
// `trips` times, as far as what is known of the dims, and the program's guards, allow; where they allow no
// kManyTrips, somewhat more. Below 0: so many fewer than none, for loops whose first iterations stand before
// them.
constexpr int64_t kManyTrips = 7;
PointValues launch_numbers(const RoleProgram& r, int64_t trips, int64_t points);

// The dims, data and launched blocks among them, to tell launches apart.
std::vector<int64_t> launch_dims(const RoleProgram& r, const PointValues& values);

}  // namespace tilegen::thread
