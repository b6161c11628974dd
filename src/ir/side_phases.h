// Phases of a kernel's barriers (ir/transaction_barriers.h) as its statements are done one behind the other,
// as far as constants and counters of loops tell them: whether a statement waits for arrivals that have not
// been.
//
// It is asked to find an order (ir/weave_sides.h), not to prove one: what it cannot tell it takes for
// complete, and check/barrier_check.cpp judges.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/program.h"

namespace tilegen::ir {

class SidePhases {
 public:
  SidePhases(const Program& p, const Kernel& kernel);

  bool holds_barriers(StmtId s) const { return holds_.contains(s); }
  // Something in it waits for what nothing that is done has completed.
  bool blocks(StmtId s);
  // It is done.
  void pass(StmtId s);
  // Of the loops around, in their first iterations.
  void enter(const Loop& loop);
  void leave(const Loop& loop) { values_.erase(loop.vars.front()); }

  struct Phase {
    int64_t arrived = 0, completed = 0;
  };
  struct State {
    std::map<std::pair<BufferId, int64_t>, Phase> phases;
    std::set<BufferId> unknown;
  };
  const State& state() const { return state_; }
  void restore(State state) { state_ = std::move(state); }

 private:
  bool find_barriers(const Block& block);
  bool run(const Block& block);
  bool run(StmtId s);
  bool step(const TileOp& op);
  void give_up(StmtId s);
  std::optional<int64_t> eval(ExprId e) const;

  const Program& p_;
  const Kernel& kernel_;
  std::set<StmtId> holds_;
  std::map<VarId, int64_t> values_;
  State state_;
  int64_t steps_ = 0, all_steps_ = 0;  // of a question, of all
};

}  // namespace tilegen::ir
