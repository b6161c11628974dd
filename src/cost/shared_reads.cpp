#include "cost/shared_reads.h"

#include <algorithm>

#include "analysis/shared_rows.h"
#include "arith/prove.h"

namespace tilegen::cost {

namespace {

// Blocks of the grid that read the same elements.
double readers(const PlannedKernel& k, const ir::Kernel& kernel, const ir::Region& region) {
  double blocks = 1;
  for (size_t d = 0; d < kernel.grid.size(); ++d) {
    const ir::VarId index = kernel.block_vars[d];
    const bool elsewhere = (kernel.split && index == kernel.split->part) ||
                           std::any_of(region.offsets.begin(), region.offsets.end(), [&](ir::ExprId offset) {
                             return arith::depends_on(k.p.exprs, offset, index);
                           });
    const auto extent = k.sizes.value(kernel.grid[d]);
    if (!elsewhere && extent) blocks *= static_cast<double>(std::max<int64_t>(1, *extent));
  }
  return blocks;
}

double clustered_readers(const PlannedKernel& k, const ir::Kernel& kernel, const analysis::KernelOp& op) {
  const plan::ValuePlan& tile = k.value(op.accesses.back().value);
  const auto& cluster = k.schedule.cluster;
  const bool once = cluster && cluster->blocks > 1 && tile.memory &&
                    analysis::shared_rows(k.p, kernel, op, *tile.memory, *cluster) > 0;
  return once ? static_cast<double>(cluster->blocks) : 1;
}

}  // namespace

void count_shared_reads(const PlannedKernel& k, const ir::Kernel& kernel, std::vector<OpWork>& works) {
  for (analysis::OpId i : k.ops.ops.ids()) {
    const analysis::KernelOp& op = k.ops.ops[i];
    Work& work = works[i.index()].work;
    const auto* tile = k.p.as<ir::TileOp>(op.stmt);
    if (works[i.index()].place != OpPlace::engine || !tile || !op.accesses.back().value.valid()) continue;
    const double blocks = readers(k, kernel, tile->operands[0]);
    const double asked = std::max(1.0, blocks / clustered_readers(k, kernel, op));
    work.repeated_bytes = work.read_bytes / blocks * (1 - 1 / asked);
  }
}

}  // namespace tilegen::cost
