// Loads that come through registers: loaded there iterations ahead, and deposited in the tile when its slot
// is free, on targets without asynchronous copies whose loads go on beside other work (AMD). Those of a
// fragment come one iteration ahead, and become the fragment when the iteration before has done with it.
//
// requires: engines and iterations of copies, layouts of values; for take_register_copies the loops' stages.
// ensures: not_loaded: the copies that planning of loops may not run ahead, each with a reason.
//   take_register_copies: Engine::register_copy of all that runs ahead.
// why here: stages tell what runs ahead; registers of a thread are known with the layouts.
// refuses, with a note: copies whose engine is given, and such as take too many registers beside the values.
#pragma once

#include "analysis/kernel_ops.h"
#include "infer/infer_layouts.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

std::map<analysis::OpId, std::string> not_loaded(const ir::Program& p, const analysis::KernelOps& ops,
                                                 const target::Target& t, const plan::KernelSchedule* given,
                                                 const infer::InferResult& layouts);

void take_register_copies(const analysis::KernelOps& ops, const target::Target& t,
                          const std::vector<plan::LoopPlan>& loops, infer::InferResult& layouts);

}  // namespace tilegen::schedule
