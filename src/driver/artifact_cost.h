// The cost model's word on an artifact.
//
// requires: a plan with every decision; why here: the model sees the program in the form that was planned.
// refuses: targets without threads: the estimate has no kernels, and there are no cliffs.
#pragma once

#include "cost/cliffs.h"
#include "driver/compile.h"

namespace tilegen::driver {

cost::Estimate estimate(const Artifact& artifact);
// Of its plan at other sizes than those it was made for.
cost::Estimate estimate_at(const Artifact& artifact, const cost::Sizes& sizes);
std::vector<cost::Cliff> cliffs(const Artifact& artifact);

}  // namespace tilegen::driver
