// What simulated launches found and counted, for tools.
#pragma once

#include <span>
#include <string>

#include "sim/simulator.h"

namespace tilegen::sim {

// {"kernels": [{"findings": [...], "dropped": n, "counters": {...}}]}: one entry per kernel, every field of
// Finding and Counters under its name.
std::string report_json(std::span<const SimResult> results);

}  // namespace tilegen::sim
