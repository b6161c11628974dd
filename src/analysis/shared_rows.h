// Tiles that are the same for all blocks of a cluster.
#pragma once

#include <optional>
#include <string>

#include "analysis/kernel_ops.h"
#include "layout/layout.h"
#include "plan/schedule.h"

namespace tilegen::analysis {

// The kernel's block index of this name.
std::optional<ir::VarId> block_index(const ir::Program& p, const ir::Kernel& kernel, const std::string& name);

// Rows of each box of a copied tile that one block of the cluster reads for all of them. 0: the tile is not
// shared, since the blocks want different elements or the boxes do not divide.
int64_t shared_rows(const ir::Program& p, const ir::Kernel& kernel, const KernelOp& copy,
                    const layout::Layout& tile, const plan::ClusterPlan& cluster);

}  // namespace tilegen::analysis
