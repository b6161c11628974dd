// Stages of the statements of a pipelined loop, and the slots its tiles need.
//
// requires: collected ops with their engines; layouts of the shared values (their bytes).
// ensures: every op of a planned loop has a stage; a value written in an earlier stage than it is read has
// num_stages slots, or one fewer where threads load it through registers: those of the newest iteration are
// the last. why here: after layouts, whose bytes decide how many stages fit. refuses, with a note: overlap on
// a target whose loads do not run beside other work; stages that do not fit shared memory; copies through
// registers that take too many of them, or whose engine is given.
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
// brings. `not_loaded`: copies that may not come through registers, and why.
// `most_stages`: of loops that ask for none; 0: any.
PipelineResult plan_pipelines(const ir::Program& p, int kernel, const analysis::KernelOps& ops,
                              analysis::LoopDependences& dependences, const target::Target& target,
                              const IdVector<analysis::ValueId, int64_t>& bytes, const ArenaBytes& arena,
                              const std::set<analysis::OpId>& produced, bool single_wave,
                              const plan::KernelSchedule* given,
                              const std::map<analysis::OpId, std::string>& not_loaded = {},
                              int64_t most_stages = 0);

}  // namespace tilegen::schedule
