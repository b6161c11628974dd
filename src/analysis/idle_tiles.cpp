#include "analysis/idle_tiles.h"

#include <algorithm>

#include "analysis/run_ahead.h"

namespace tilegen::analysis {

std::vector<const KernelOp*> ops_beside_idle_tile(const ir::Program& p, const KernelOps& ops,
                                                  const ir::Loop& loop, ValueId tile) {
  const std::vector<const KernelOp*> body = ops_inside(p, ops, loop);
  const auto reads = [&](const KernelOp* op) {
    return std::any_of(op->accesses.begin(), op->accesses.end(),
                       [&](const OpAccess& a) { return a.read && a.value == tile; });
  };
  const auto first = std::find_if(body.begin(), body.end(), reads);
  if (first == body.end()) return {};
  const auto behind = std::find_if(body.rbegin(), body.rend(), reads).base();
  std::vector<const KernelOp*> idle(body.begin(), first);
  idle.insert(idle.end(), behind, body.end());
  return idle;
}

}  // namespace tilegen::analysis
