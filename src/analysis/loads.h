// The elements that an expression reads.
#pragma once

#include <set>

#include "ir/expr_nodes.h"
#include "ir/program.h"

namespace tilegen::analysis {

// Whether visit(ExprId, const ExprNode&) answers true for a load in the expression, those of indices
// included; each load is asked once, until one answers true. An invalid expression has none.
template <class Visit>
bool any_load(const ir::ExprPool& e, ir::ExprId root, Visit&& visit) {
  ir::ExprNodes nodes(e, {root});
  while (const ir::ExprId id = nodes.next()) {
    const ir::ExprNode& n = e[id];
    if (n.op == ir::ExprOp::load && visit(id, n)) return true;
  }
  return false;
}

inline bool reads_any(const ir::ExprPool& e, ir::ExprId root, const std::set<ir::BufferId>& buffers) {
  return any_load(e, root, [&](ir::ExprId, const ir::ExprNode& n) { return buffers.count(n.object) > 0; });
}

}  // namespace tilegen::analysis
