// Planning: program + target (+ what the caller fixed) -> Schedule, in this order: engine and atom per op;
// threads; layouts (infer/); stages and slots of pipelined loops; raster order. Read it in plan_program.cpp
// top to bottom.
//
// requires: a checked program.
// ensures: every op, on-chip value and pipelined loop of every kernel has a plan; what was given is taken as
// it is. refuses: no_atom, schedule_illegal, schedule_mismatch, conversion_refused, limit_memory,
// target_unsupported.
#pragma once

#include "ir/program.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

struct PlanOptions {
  const plan::Schedule* given = nullptr;
  bool conversions = true;
};

Expected<plan::Schedule> plan_program(const ir::Program& p, const target::Target& target,
                                      const PlanOptions& options);

}  // namespace tilegen::schedule
