// Engine and atom of a gemm, and the operand layouts the atom demands.
//
// requires: a checked gemm; its target and the block's computing threads.
// ensures: layouts over whole buffers; on GPUs the warp grid divides the tile exactly.
// refuses (no_atom, schedule_illegal): no row of the target's tables fits; a given atom or warp split is
// illegal.
// why here: before layout inference, which takes the operand layouts as strict.
#pragma once

#include <optional>

#include "analysis/gemm_shape.h"
#include "ir/program.h"
#include "plan/gemm_plan.h"
#include "target/target.h"

namespace tilegen::schedule {

using analysis::GemmShape;
using analysis::MatrixDims;
using plan::GemmPlan;

// The split of a tile over warps that a given plan asks for, as far as it says one.
inline bool is_split(const plan::OpPlan& given, int64_t m, int64_t n) {
  return (given.warps_m == 0 || given.warps_m == m) && (given.warps_n == 0 || given.warps_n == n);
}
std::string split_text(const plan::OpPlan& given);

// `given` may fix the engine, the atom and the warp split. `no_warpgroups`: why warpgroup instructions cannot
// do it (their tiles do not come by tensor copies, schedule/tensor_copy_plan.h), or empty.
// `columns_together`: what follows works on columns of the sum, which a lane should have; else on rows, where
// the target has the choice (MmaAtom::transposed).
Expected<GemmPlan> plan_gemm(const ir::Program& p, const ir::TileOp& op, const target::Target& target,
                             int64_t threads, const plan::OpPlan* given, const std::string& path,
                             const SourceLocation& location, const std::string& no_warpgroups = "",
                             bool columns_together = false);

// The part of GPUs (gemm_plan_mma.cpp): every row of the table and every split over warps is
// weighed by issue cycles, shared memory traffic and registers. Warps that a small tile has no use for hold
// copies. Where no matrix instruction divides the tile those on one padded along m and n are weighed too,
// then, where nothing does, plain multiply-adds on a padded one. Warpgroup instructions come first where they
// can do it.
Expected<GemmPlan> plan_mma_gemm(const ir::Program& p, const ir::TileOp& op, const GemmShape& s,
                                 const target::Target& t, int64_t threads, const plan::OpPlan* given,
                                 const std::string& path, const SourceLocation& location,
                                 const std::string& no_warpgroups, bool columns_together);

// Hopper's part (gemm_plan_warpgroup.cpp): wgmma, where the target has it and the tile divides into rows of
// 64 over whole warpgroups. Warpgroups split rows first; every split and width is weighed by shared memory
// traffic, as long as the accumulators fit a thread's registers. Nothing, with a reason, where it is not
// legal. That both tiles come by tensor copies the caller has seen to. `copies`: as many parts of the
// warpgroups each make the whole product.
std::optional<GemmPlan> plan_warpgroup_gemm(const ir::Program& p, const ir::TileOp& op, const GemmShape& s,
                                            const target::Target& t, int64_t threads,
                                            const plan::OpPlan* given, std::string* reason,
                                            int64_t copies = 1);

// As which threads of a warpgroup have the product's left operand where it comes from registers, each of
// `copies` warpgroups all of it.
layout::Fragment warpgroup_left_fragment(const ir::Program& p, const ir::TileOp& op,
                                         const target::WarpgroupAtom& atom, int64_t copies,
                                         const target::Target& t);

}  // namespace tilegen::schedule
