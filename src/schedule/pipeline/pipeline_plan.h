// Stages of the statements of a pipelined loop, and the slots its tiles need.
//
// requires: collected ops with their engines; layouts of the shared values (their bytes).
// ensures: every op of a planned loop has a stage; a value written in an earlier stage than it is read has
// num_stages slots. why here: after layouts, whose bytes decide how many stages fit. refuses, with a note:
// overlap on a target that has no asynchronous copy; stages that do not fit shared memory.
//
// Rule: a copy from global to shared memory that depends on nothing computed in the loop runs num_stages - 1
// iterations ahead (stage 0); everything else runs in the last stage. Such a copy stands directly in the
// loop's body, fills its tile, and the tile is read after it and in this loop only: then every iteration may
// have a slot of its own.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "analysis/dependence.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

struct PipelineResult {
  std::vector<plan::LoopPlan> loops;
  std::map<analysis::ValueId, int64_t> slots;  // absent = 1
  std::vector<plan::Note> notes;
  std::optional<Error> refused;  // given stages that ops cannot run in
};

// Bytes of the block's arena when values have these slots.
using ArenaBytes = std::function<int64_t(const std::map<analysis::ValueId, int64_t>& slots)>;

// `bytes` of one slot of every value, by value index (0 for values in registers). `produced`: ops that a
// producer does, where there is one: nothing else of their loops runs ahead. `single_wave`:
// a block has a multiprocessor for itself, and takes the shared memory that it has for tiles that a producer
// brings.
PipelineResult plan_pipelines(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                              analysis::LoopDependences& dependences, const target::Target& target,
                              const IdVector<analysis::ValueId, int64_t>& bytes, const ArenaBytes& arena,
                              const std::set<analysis::OpId>& produced, bool single_wave,
                              const plan::KernelSchedule* given);

}  // namespace tilegen::schedule
