// A role's statements in the order of execution, for loops of given lengths. Not used outside this folder.
#pragma once

#include "expand/scheduled_kernel.h"

namespace tilegen::expand {

// Lengths of loops and outcomes of conditions of one run; the same for all roles.
struct Lengths {
  int64_t iterations = 1;  // of pipelined loops
  int64_t trips = 2;       // of others
  int64_t tiles = 1;       // of persistent blocks
  bool conditions = true;
};

// A statement that is executed, with the tokens of an Await that exist. `use`: of the pipeline;
// `iteration`: of its own loop, counted on over the runs of the loop where its pipelines' uses are.
struct Event {
  const Stmt* stmt = nullptr;
  int64_t use = 0;
  int64_t iteration = 0;
  StmtId loop;  // of the innermost Pipelined statement; invalid: none
  std::vector<StmtId> finished;
};

std::vector<Event> trace_role(const ir::Program& p, const ScheduledKernel& k, const Role& role,
                              const Lengths& run);

}  // namespace tilegen::expand
