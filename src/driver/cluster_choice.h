// Clusters whose blocks bring tiles for each other, by the cost model: products of few rows, whose blocks ask
// device memory for the same tiles at about the same time.
//
// requires: a finished plan without a cluster. ensures: a cluster that the plan could have. why here: what is
// shorter shows in finished plans. refuses: nothing; planning with the cluster may.
#pragma once

#include <optional>

#include "analysis/kernel_ops.h"
#include "cost/sizes.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::driver {

// None where no cluster is shorter, or the grid is not known by constants and what is given. `ops`: of
// the kernel; `estimate`: of the plan, where it has been asked for.
std::optional<plan::ClusterPlan> shorter_cluster(const ir::Program& p, int kernel,
                                                 const analysis::KernelOps& ops,
                                                 const plan::KernelSchedule& plan, const target::Target& t,
                                                 const cost::Sizes& sizes, std::optional<double>& estimate);

}  // namespace tilegen::driver
