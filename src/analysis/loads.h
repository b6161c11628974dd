// The elements that an expression reads.
#pragma once

#include <set>
#include <unordered_set>
#include <vector>

#include "ir/program.h"

namespace tilegen::analysis {

// Whether visit(ExprId, const ExprNode&) answers true for a load in the expression, those of indices
// included; each load is asked once, until one answers true. An invalid expression has none.
template <class Visit>
bool any_load(const ir::ExprPool& e, ir::ExprId root, Visit&& visit) {
  std::vector<ir::ExprId> pending = {root};
  std::unordered_set<ir::ExprId> seen;
  while (!pending.empty()) {
    const ir::ExprId id = pending.back();
    pending.pop_back();
    if (!id.valid() || !seen.insert(id).second) continue;
    const ir::ExprNode& n = e[id];
    pending.insert(pending.end(), {n.a, n.b, n.c});
    if (n.op != ir::ExprOp::load) continue;
    if (visit(id, n)) return true;
    const auto indices = e.indices(id);
    pending.insert(pending.end(), indices.begin(), indices.end());
  }
  return false;
}

inline bool reads_any(const ir::ExprPool& e, ir::ExprId root, const std::set<ir::BufferId>& buffers) {
  return any_load(e, root, [&](ir::ExprId, const ir::ExprNode& n) { return buffers.count(n.object) > 0; });
}

}  // namespace tilegen::analysis
