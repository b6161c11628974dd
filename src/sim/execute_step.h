// One statement of a warp, carried out: loops, branches and roles here, the rest by the files of its kind.
#pragma once

#include "sim/cluster_run.h"

namespace tilegen::sim {

void execute_step(ClusterRun& run, Warp& w, const Step& s);

}  // namespace tilegen::sim
