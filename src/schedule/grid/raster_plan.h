// The order in which a grid's blocks walk the tiles of the result.
//
// requires: a checked kernel.
// ensures: a RasterPlan with its reason; of a given order what is not said is planned for it.
// refuses (schedule_illegal): a given order that the grid or the target does not have.
// why here: nothing else depends on it; it needs the regions that a block reads, not how they are laid out.
//
// Rule: blocks that run at the same time should share what they read. Where a copy's place, and where the
// loops around it begin, depend on one of the two fastest block indices only, blocks along the other one
// share it; what innermost loops read counts. A wave of W blocks that covers G rows reads G row panels and
// W / G column panels; that is least for G = sqrt(W * column bytes / row bytes). Where only column panels are
// shared, and are most of what a block moves, blocks go down the columns.
// Where blocks have different amounts of work the longest go first, so that none is left alone at the end;
// points of the other dimensions go in groups whose tiles take a sixth of the second cache (measured: with
// more of it neighbours fetch the same tiles at different times), and that are no smaller than a wave.
#pragma once

#include "ir/program.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

Expected<plan::RasterPlan> plan_raster(const ir::Program& p, const ir::Kernel& kernel,
                                       const target::Target& target, const plan::KernelSchedule* given);

}  // namespace tilegen::schedule
