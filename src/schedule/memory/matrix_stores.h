// Copies of matrix accumulators to shared tiles by instructions that store eight rows of 16 bytes at a time.
//
// requires: engines, layouts and conversions of the kernel.
// ensures: OpPlan::matrix_stores of each copy of a whole fragment to a whole shared tile of 2-byte elements,
//   on targets that have such instructions (stmatrix), where within every 8x8 matrix lane 4 * r + c holds
//   elements 2c and 2c + 1 of row r in neighbouring registers, as an accumulator does, and eight elements
//   along one dimension of the tile are 16 aligned bytes.
// why here: it needs both layouts, the fragment's as the copy sees it.
// refuses: nothing; other copies store element by element, or vectors.
#pragma once

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

// The copy may be done so, with the layouts as they are. `copies`: warpgroups that have the same, of which
// one stores.
bool can_store_matrices(const ir::Program& p, const analysis::KernelOps& ops, const analysis::KernelOp& op,
                        const target::Target& t, analysis::ValuePlans values,
                        const std::vector<plan::ConversionPlan>& conversions, const plan::OpPlan& plan,
                        int64_t copies = 1);

void plan_matrix_stores(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                        const plan::KernelSchedule* given, plan::KernelSchedule& s);

}  // namespace tilegen::schedule
