#include "driver/cluster_choice.h"

#include "cost/estimate.h"
#include "driver/split_plan.h"

namespace tilegen::driver {

namespace {

// Of the time with single blocks. On an H200, of 26 products of few rows in up to eight tiles each, all that
// are estimated at less took less than 0.99 (bench/results/clusters.json).
constexpr double kWorthwhile = 0.97;

}  // namespace

std::optional<plan::ClusterPlan> shorter_cluster(const ir::Program& p, int kernel,
                                                 const analysis::KernelOps& ops,
                                                 const plan::KernelSchedule& plan, const target::Target& t,
                                                 const cost::Sizes& sizes, std::optional<double>& estimate) {
  if (!t.tensor_copy || (plan.cluster && plan.cluster->blocks > 1) || !known_blocks(p, kernel, sizes))
    return {};
  cost::SizedProgram sized(p, sizes);
  plan::KernelSchedule other = plan;
  const cost::PlannedKernel k{p, ops, other, t, sized};
  const std::vector<cost::OpWork> works = works_of(k);
  const cost::KernelEstimate alone = cost::estimate_kernel(kernel, k, sized, works);
  estimate = alone.microseconds;
  // Nothing else gets shorter.
  if (alone.bound != cost::Bound::memory || alone.block.work.repeated_bytes <= 0) return {};
  std::optional<plan::ClusterPlan> best;
  double least = alone.microseconds * kWorthwhile;
  for (ir::VarId along : p.kernels[static_cast<size_t>(kernel)].block_vars) {
    for (int64_t blocks = 2; blocks <= t.max_cluster; blocks *= 2) {
      other.cluster = plan::ClusterPlan{blocks, p.var(along).name, ""};
      const double us = cost::estimate_kernel(kernel, k, sized, works).microseconds;
      if (us >= least) break;
      least = us;
      best = other.cluster;
    }
  }
  return best;
}

}  // namespace tilegen::driver
