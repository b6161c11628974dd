// What a consumer's loop over pipelines issues: statements of its body in the order that the schedule gives.
#pragma once

#include "expand/expander.h"

namespace tilegen::expand {

struct ConsumerUnit {
  StmtId stmt;
  int64_t lag = 0;               // iterations behind the newest
  StmtId cleared_by;             // a fill that it stands for: its products overwrite
  bool product = false;          // of warpgroups
  bool waits = false;            // ... that has waited for its instructions
  std::set<int> reads, writes;   // values in registers, and tiles that threads write for products
  std::set<int> in_turn;         // such tiles that it writes, with slots that iterations use in turn
  std::vector<int> first, last;  // pipelines whose use begins and ends with it
};

// What the product reads beside its sums.
std::set<int> operands(const ConsumerUnit& product);
// The unit must not run beside the product: they share sums, or the unit changes its operand.
bool disturbs(const ConsumerUnit& u, const ConsumerUnit& product);
bool meet(const std::set<int>& a, const std::set<int>& b);

// A statement by itself: what it is and touches.
ConsumerUnit unit_of(const Expander& x, StmtId id);

struct ConsumerUnits {
  ConsumerUnits(Expander& x, const ir::Loop& loop, StmtId id);

  std::vector<ConsumerUnit> units;
  bool lagging = false;
  bool ordered = false;  // warpgroups take turns to issue an iteration's products

 private:
  const KernelOp* first_op(StmtId id) const;
  void use_of(int pipeline);

  Expander& x_;
};

}  // namespace tilegen::expand
