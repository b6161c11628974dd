// A role's statements in the order of execution, for loops of given lengths. Not used outside this folder.
#pragma once

#include <optional>
#include <utility>

#include "expand/scheduled_kernel.h"

namespace tilegen::expand {

// Lengths of loops and outcomes of conditions of one run; the same for all roles.
struct Lengths {
  int64_t iterations = 1;  // of pipelined loops
  int64_t trips = 2;       // of others
  int64_t tiles = 1;       // of persistent blocks
  bool conditions = true;
  size_t warpgroup = 0;  // of the computing threads, where each has a list of its own
};

// A statement that is executed, with the tokens of an Await that exist. `use`: of the pipeline.
struct Event {
  const Stmt* stmt = nullptr;
  int64_t use = 0;
  // Iterations of the Pipelined statements around, outermost first, counted on over the runs of each loop
  // where its pipelines' uses are.
  std::vector<std::pair<StmtId, int64_t>> iterations;
  std::vector<StmtId> finished;

  // Of a loop that is around; else nothing.
  std::optional<int64_t> iteration(StmtId loop) const {
    for (const auto& [around, i] : iterations)
      if (around == loop) return i;
    return std::nullopt;
  }
};

std::vector<Event> trace_role(const ir::Program& p, const ScheduledKernel& k, const Role& role,
                              const Lengths& run);

}  // namespace tilegen::expand
