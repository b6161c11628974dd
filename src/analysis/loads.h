// The elements that an expression reads.
#pragma once

#include <set>

#include "ir/program.h"
#include "support/small_set.h"

namespace tilegen::analysis {

// Whether visit(ExprId, const ExprNode&) answers true for a load in the expression, those of indices
// included; each load is asked once, until one answers true. An invalid expression has none.
template <class Visit>
bool any_load(const ir::ExprPool& e, ir::ExprId root, Visit&& visit) {
  SmallVector<ir::ExprId, 32> pending = {root};
  SmallSet<ir::ExprId, 32> seen;
  while (!pending.empty()) {
    const ir::ExprId id = pending.back();
    pending.pop_back();
    if (!id.valid() || !seen.insert(id)) continue;
    const ir::ExprNode& n = e[id];
    for (ir::ExprId operand : {n.a, n.b, n.c})
      if (operand.valid()) pending.push_back(operand);
    if (n.op != ir::ExprOp::load) continue;
    if (visit(id, n)) return true;
    for (ir::ExprId index : e.indices(id)) pending.push_back(index);
  }
  return false;
}

inline bool reads_any(const ir::ExprPool& e, ir::ExprId root, const std::set<ir::BufferId>& buffers) {
  return any_load(e, root, [&](ir::ExprId, const ir::ExprNode& n) { return buffers.count(n.object) > 0; });
}

}  // namespace tilegen::analysis
