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

// What the copy engine may do: what it demands of tensors (aligned bases and strides) holds for some launches only, so a
// program may be planned again with less. product_loads: of tiles that products read; others cost no product its engine.
enum class TensorCopies : uint8_t { loads_and_stores, loads, product_loads, none };

struct PlanOptions {
  const plan::Schedule* given = nullptr;
  bool conversions = true;
  TensorCopies tensor_copies = TensorCopies::loads_and_stores;
};

Expected<plan::Schedule> plan_program(const ir::Program& p, const target::Target& target,
                                      const PlanOptions& options);

}  // namespace tilegen::schedule
