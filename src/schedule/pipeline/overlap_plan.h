// The order in which one iteration of a loop with a producer issues the ops of the computing threads.
//
// A product that needs what threads made of an earlier product's sums would leave the matrix units idle while
// they do so. It may lag: iteration i issues the earlier product of i and the later product of i - 1, and the
// threads' work on the first runs beside the second. Where the threads write for the next iteration what a
// product still reads, or read what the next one writes, iterations have the value in other registers, in
// turn.
//
// requires: the loop's products are asynchronous (warpgroup_mma) and their shared tiles come through
// pipelines, which keep a slot for each iteration under way.
// ensures: each reader of a value in registers sees what it sees in program order (modulo_schedule.h). The
//   ops of a branch or a loop inside stay together.
// why here: engines decide what is asynchronous; expansion follows the order and places the waits at first
//   use.
// refuses: schedule_illegal, a given order in which an op sees something else. With a note: products that run
//   beside no other work though there is some.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "analysis/dependence.h"
#include "plan/schedule.h"
#include "schedule/pipeline/ping_pong_plan.h"

namespace tilegen::schedule {

struct OverlapFacts {
  const PingPongFacts& ping_pong;
  // Words of values in registers, those that a thread would not have for all at once, and whether it has
  // enough where values have so many slots.
  std::map<analysis::ValueId, int64_t> registers;
  int64_t missing_words = 0;
  std::function<bool(const std::map<analysis::ValueId, int64_t>& slots)> fit;
  std::vector<std::set<analysis::ValueId>> handed_over;  // tiles of the producer, those that come together
  std::map<analysis::ValueId, int64_t> tile_bytes;       // of one slot of them
};

// Stages of a loop's ops in the order of issue, after those of the producer's copies, which fill tiles that
// have slots: stages after the last are of iterations before. `slots`: of values in registers, given or
// planned. With `given` the plan's own stages are judged instead. `note`: what keeps products from running
// beside the threads' work.
Checked order_loop(const ir::Program& p, const analysis::KernelOps& ops,
                   analysis::LoopDependences& dependences, ir::StmtId loop, const OverlapFacts& facts,
                   bool given, plan::LoopPlan& plan, std::map<analysis::ValueId, int64_t>& slots,
                   std::string& note);

}  // namespace tilegen::schedule
