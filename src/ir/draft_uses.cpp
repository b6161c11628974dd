#include "ir/draft_uses.h"

#include <algorithm>
#include <unordered_set>

#include "ir/expr_nodes.h"
#include "ir/store_parts.h"

namespace tilegen::ir {

DraftUses::DraftUses(const Program& p, const Draft& draft)
    : p_(p), draft_(draft), positions_(p.stmts.size(), -1) {
  for (const Kernel& k : p.kernels) walk(k.body);
}

void DraftUses::walk(const Block& block) {
  for (StmtId s : block) visit(s);
}

void DraftUses::visit(StmtId s) {
  const int64_t here = positions_[s.value] = next_++;
  if (const auto it = draft_.assignments.find(s); it != draft_.assignments.end()) {
    use(it->second.value, it->second.var);
    if (const auto from = draft_.exchanges.find(s); from != draft_.exchanges.end()) use(from->second.lane);
    ++assignments_;
    declared_.try_emplace(it->second.var, here);
    for (StmtId around : open_)
      if (positions_[around.value] > declared_.at(it->second.var)) assigned_[around].insert(it->second.var);
  } else if (const auto* store = p_.as<Store>(s)) {
    visit_exprs(*store, [&](ExprId e) { use(e); });
    if (const auto named = draft_.old_values.find(s); named != draft_.old_values.end())
      declared_.try_emplace(named->second, here);
  } else if (const auto* op = p_.as<TileOp>(s)) {
    use(op->value);
    for (const Region& region : op->operands)
      for (ExprId offset : region.offsets) use(offset);
  } else if (const auto* branch = p_.as<Branch>(s)) {
    use(branch->condition);
    const size_t before = assignments_;
    open_.push_back(s);
    walk(branch->then_body);
    walk(branch->else_body);
    open_.pop_back();
    if (holds_only_assignments(branch->then_body) && holds_only_assignments(branch->else_body))
      pure_.insert(s);
    if (assignments_ > before) naming_.insert(s);
  } else if (const auto* loop = p_.as<Loop>(s)) {
    use(loop->begin);
    for (ExprId extent : loop->extents) use(extent);
    open_.push_back(s);
    loops_.push_back({here, here + size(s)});
    walk(loop->body);
    loops_.pop_back();
    open_.pop_back();
  }
}

// A use inside a loop that does not name the value itself may come again until the loop ends.
void DraftUses::use(ExprId root, VarId assigned) {
  ExprNodes nodes(p_.exprs, {root});
  while (const ExprId id = nodes.next()) {
    const ExprNode& n = p_.exprs[id];
    if (n.op != ExprOp::var) continue;
    const auto declared = declared_.find(n.var());
    if (declared == declared_.end()) continue;
    int64_t until = next_ - 1;
    uint64_t times = 1;
    for (const OpenLoop& loop : loops_)
      if (loop.begin > declared->second)
        until = std::max(until, loop.end), times = n.var() == assigned ? 1 : 4;
    last_[n.var()] = std::max(last_[n.var()], until);
    count_[n.var()] += times;
  }
}

// Positions that the statement and what it holds take.
int64_t DraftUses::size(StmtId s) const {
  int64_t total = 0;
  std::vector<StmtId> todo{s};
  while (!todo.empty()) {
    const StmtId next = todo.back();
    todo.pop_back();
    ++total;
    const auto add = [&](const Block& b) { todo.insert(todo.end(), b.begin(), b.end()); };
    if (const auto* loop = p_.as<Loop>(next)) add(loop->body);
    if (const auto* branch = p_.as<Branch>(next)) add(branch->then_body), add(branch->else_body);
  }
  return total;
}

const std::set<VarId>& DraftUses::assigned_in(StmtId s) const {
  static const std::set<VarId> kNone;
  const auto it = assigned_.find(s);
  return it == assigned_.end() ? kNone : it->second;
}

bool DraftUses::holds_only_assignments(const Block& block) const {
  return std::all_of(block.begin(), block.end(),
                     [&](StmtId s) { return draft_.assignments.contains(s) || pure_.contains(s); });
}

}  // namespace tilegen::ir
