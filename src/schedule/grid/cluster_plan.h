// Clusters: blocks that run at once, neighbours along one dimension of the grid, and read the tiles that are
// the same for all of them once, each block a part.
//
// requires: pipelines, layouts, engines and roles are decided.
// ensures: a cluster of more than one block shares a tile, and its blocks do the same number of iterations.
//
// Rule: where bringing the tiles takes longer than multiplying them, a cluster pays that saves more than its
// meetings cost. A multiprocessor gets 70 bytes a cycle from the second cache when all want some, in lines of
// 128: rows of a tile that begin inside a line cost two (both measured on an H200, docs/performance.md).
// Tiles with aligned rows are wide enough for that in all shapes that were measured, so this is about tensors
// whose rows are known to be no multiple of 128 bytes, in grids and loops of known size.
// refuses (schedule_illegal, schedule_mismatch): given clusters that are not possible, or share nothing.
#pragma once

#include <set>

#include "analysis/kernel_ops.h"
#include "infer/infer_layouts.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

// `produced`: the copies that fill pipelines.
Expected<plan::ClusterPlan> plan_cluster(const ir::Program& p, const ir::Kernel& kernel,
                                         const analysis::KernelOps& ops, const target::Target& t,
                                         const std::set<analysis::OpId>& produced,
                                         const infer::InferResult& layouts, bool producer,
                                         const plan::KernelSchedule* given);

}  // namespace tilegen::schedule
