// Loops that blocks share, as a schedule gives them or as the cost model has it.
//
// requires: a program in canonical form. ensures: a form is one that planning and expansion serve, through a
// cluster where a producer loads the loop's tiles. why here: what is shorter shows in finished plans, with
// accesses.
// refuses: schedule_mismatch, schedule_illegal for given splits that are not possible.
#pragma once

#include <memory>

#include "analysis/kernel_ops.h"
#include "cost/sizes.h"
#include "expand/split_form.h"
#include "plan/schedule.h"

namespace tilegen::driver {

using SplitProgram = std::shared_ptr<const ir::Program>;

// The form that is given; null for one part.
Expected<SplitProgram> given_split(const ir::Program& p, int kernel, const target::Target& t,
                                   const plan::SplitPlan& given);

// Blocks of the kernel's grid where they are known: by constants and what is given.
std::optional<double> known_blocks(const ir::Program& p, int kernel, const cost::Sizes& given);

// The first loop that blocks could share, of a grid of known size that fills half of the machine at most:
// more blocks than run at once take longer in every case that was measured (bench/results/few_blocks.json).
// Invalid: none, and `why` says why where the grid is so. Known are constants and what is given.
ir::StmtId loop_to_share(const ir::Program& p, int kernel, const target::Target& t, const cost::Sizes& sizes,
                         const analysis::KernelOps& ops, std::string& why);

// Numbers of parts whose estimates are compared. Through a cluster all that it can have; through a workspace
// the one that fills the machine, of as many iterations for each where that is more than half of it.
std::vector<int64_t> parts_to_try(const ir::Program& p, int kernel, const target::Target& t,
                                  const cost::Sizes& sizes, ir::StmtId loop, expand::SplitThrough through);

// Of a kernel, by the cost model; `ops` where they have been collected, else null.
double estimated_microseconds(const ir::Program& p, int kernel, const plan::KernelSchedule& plan,
                              const target::Target& t, const cost::Sizes& sizes,
                              const analysis::KernelOps* ops = nullptr);

}  // namespace tilegen::driver
