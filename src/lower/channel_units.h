// What a consumer's loop over channels issues: statements of its body in the order that the schedule gives.
#pragma once

#include <vector>

#include "lower/kernel_lowering.h"

namespace tilegen::lower {

struct ChannelUnit {
  ir::StmtId stmt;
  int64_t lag = 0;
  bool product = false;
  bool waits = false;               // ... that has waited for its instructions
  std::set<int> reads, writes;      // values in registers, and tiles that threads write for products
  std::set<int> turns;              // such tiles that it writes, with slots in turn
  std::vector<const Channel*> first, last;  // whose use begins and ends with it
};

class ChannelUnits {
 public:
  ChannelUnits(KernelLowering& k, const ir::Loop& loop, const std::string& origin);

  std::vector<ChannelUnit> units;
  std::vector<const Channel*> once;  // filled in front of the loop, used in it
  bool lagging = false;
  bool turns = false;  // computing warpgroups take turns to issue an iteration's products

 private:
  const analysis::KernelOp* first_op(ir::StmtId id) const;
  void touched(ir::StmtId id, ChannelUnit& u) const;
  bool uses(ir::StmtId id, const Channel& c) const;
  void use_of(const Channel& c);

  KernelLowering& k_;
  const std::string& origin_;
};

}  // namespace tilegen::lower
