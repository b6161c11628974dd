// What a consumer's loop over pipelines issues: statements of its body in the order that the schedule gives.
#pragma once

#include "expand/expander.h"

namespace tilegen::expand {

struct ConsumerUnit {
  StmtId stmt;
  int64_t lag = 0;               // iterations behind the newest
  bool product = false;          // of warpgroups
  bool waits = false;            // ... that has waited for its instructions
  std::set<int> reads, writes;   // values in registers, and tiles that threads write for products
  std::set<int> in_turn;         // such tiles that it writes, with slots that iterations use in turn
  std::vector<int> first, last;  // pipelines whose use begins and ends with it
};

struct ConsumerUnits {
  ConsumerUnits(Expander& x, const ir::Loop& loop, StmtId id);

  std::vector<ConsumerUnit> units;
  std::vector<int> once;  // pipelines filled in front of the loop, used in it
  bool lagging = false;
  bool ordered = false;  // warpgroups take turns to issue an iteration's products

 private:
  const KernelOp* first_op(StmtId id) const;
  void touched(StmtId id, ConsumerUnit& u) const;
  void use_of(int pipeline, StmtId loop);

  Expander& x_;
};

}  // namespace tilegen::expand
