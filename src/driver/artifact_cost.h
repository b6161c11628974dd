// The cost model's word on an artifact.
//
// requires: a plan with every decision; why here: the model sees the program in the form that was planned.
// refuses: targets without threads: the estimate has no kernels, and there are no cliffs.
#pragma once

#include <span>

#include "cost/cliffs.h"
#include "driver/compile.h"

namespace tilegen::driver {

cost::Estimate estimate(const Artifact& artifact);
// Of its plan at each of some sizes, other than those that it was made for, in microseconds. `target`: of an
// artifact of CompileOptions::estimate_only, which may have none of its own.
std::vector<double> microseconds_at(const Artifact& artifact, const target::Target& target,
                                    std::span<const cost::Sizes> sizes);
std::vector<cost::Cliff> cliffs(const Artifact& artifact);

}  // namespace tilegen::driver
