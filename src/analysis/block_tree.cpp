#include "analysis/block_tree.h"

#include <algorithm>

#include "arith/prove.h"

namespace tilegen::analysis {

BlockTree::BlockTree(const ir::Program& p, const ir::Kernel& kernel) : p_(p) {
  walk(kernel.body, ir::StmtId());
}

// Nesting is bounded by the limits of programs.
void BlockTree::walk(const ir::Block& block, ir::StmtId parent) {
  for (ir::StmtId id : block) {
    places_[id] = {&block, parent, places_.size()};
    if (const auto* loop = p_.as<ir::Loop>(id)) walk(loop->body, id);
    if (const auto* branch = p_.as<ir::Branch>(id)) {
      walk(branch->then_body, id);
      walk(branch->else_body, id);
    }
  }
}

std::vector<ir::StmtId> BlockTree::around(ir::StmtId s) const {
  std::vector<ir::StmtId> list;
  for (ir::StmtId at = parent(s); at.valid(); at = parent(at)) list.push_back(at);
  std::reverse(list.begin(), list.end());
  return list;
}

ir::StmtId BlockTree::loop_of(ir::StmtId s) const {
  const ir::StmtId at = parent(s);
  return at.valid() && p_.as<ir::Loop>(at) ? at : ir::StmtId();
}

ir::StmtId BlockTree::member(const ir::Block& block, ir::StmtId s) const {
  for (ir::StmtId at = s; at.valid(); at = parent(at))
    if (&block_of(at) == &block) return at;
  return ir::StmtId();
}

bool runs_irregularly(const ir::Program& p, const ir::Kernel& kernel, const BlockTree& tree, ir::StmtId s,
                      bool persistent) {
  std::vector<ir::StmtId> chain = tree.around(s);
  chain.push_back(s);
  std::vector<ir::VarId> changing;
  if (persistent) changing = kernel.block_vars;
  const auto changes = [&](ir::ExprId e) {
    return std::any_of(changing.begin(), changing.end(),
                       [&](ir::VarId v) { return arith::depends_on(p.exprs, e, v); });
  };
  for (ir::StmtId at : chain) {
    if (p.as<ir::Branch>(at) && !changing.empty()) return true;
    const auto* loop = p.as<ir::Loop>(at);
    if (!loop || loop->kind == ir::LoopKind::parallel) continue;
    if (changes(loop->begin) || changes(loop->extents[0])) return true;
    changing.insert(changing.end(), loop->vars.begin(), loop->vars.end());
  }
  return false;
}

}  // namespace tilegen::analysis
