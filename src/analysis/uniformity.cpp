#include "analysis/uniformity.h"

#include <unordered_set>

#include "analysis/loads.h"

namespace tilegen::analysis {

bool is_uniform(const ir::Program& p, ir::ExprId e) {
  return !any_load(p.exprs, e,
                   [&](ir::ExprId, const ir::ExprNode& n) { return !p.buffer(n.object).read_only; });
}

bool is_constant_with(const ir::ExprPool& e, ir::ExprId root, const std::function<bool(ir::VarId)>& known) {
  std::vector<ir::ExprId> pending = {root};
  std::unordered_set<ir::ExprId> seen;
  while (!pending.empty()) {
    const ir::ExprId id = pending.back();
    pending.pop_back();
    if (!id.valid() || !seen.insert(id).second) continue;
    const ir::ExprNode& n = e[id];
    if (n.op == ir::ExprOp::load || (n.op == ir::ExprOp::var && !known(n.var()))) return false;
    pending.insert(pending.end(), {n.a, n.b, n.c});
  }
  return true;
}

}  // namespace tilegen::analysis
