// The expressions of a statement, and the nodes of an expression.
#pragma once

#include <vector>

#include "ir/program.h"
#include "ir/store_parts.h"

namespace tilegen::check {

// Calls visit(ExprId) for every expression a statement holds itself (bodies not included).
template <class Visit>
void for_each_root(const ir::Program& p, ir::StmtId id, Visit&& visit) {
  if (const auto* loop = p.as<ir::Loop>(id)) {
    visit(loop->begin);
    for (ir::ExprId e : loop->extents) visit(e);
    if (loop->condition.valid()) visit(loop->condition);
  } else if (const auto* branch = p.as<ir::Branch>(id)) {
    visit(branch->condition);
  } else if (const auto* store = p.as<ir::Store>(id)) {
    ir::visit_exprs(*store, visit);
  } else if (const auto* op = p.as<ir::TileOp>(id)) {
    for (const ir::Region& r : op->operands)
      for (ir::ExprId e : r.offsets) visit(e);
    if (op->value.valid()) visit(op->value);
  }
}

// Visits each node reachable from a root once per start(). `always_only` leaves out what a select, `and` or
// `or` may skip.
class ExprWalk {
 public:
  explicit ExprWalk(const ir::Program& p) : program_(p), seen_(p.exprs.size(), 0) {}

  void start() { ++round_; }

  template <class Visit>
  void visit(ir::ExprId root, Visit&& visit_node, bool always_only = false) {
    if (!root.valid()) return;
    pending_.push_back(root);
    while (!pending_.empty()) {
      const ir::ExprId id = pending_.back();
      pending_.pop_back();
      if (seen_[id.value] == round_) continue;
      seen_[id.value] = round_;
      const ir::ExprNode& n = program_.exprs[id];
      visit_node(id, n);
      push_operands(n, id, always_only);
    }
  }

 private:
  void push_operands(const ir::ExprNode& n, ir::ExprId id, bool always_only) {
    if (n.op == ir::ExprOp::load) {
      for (ir::ExprId e : program_.exprs.indices(id)) pending_.push_back(e);
      return;
    }
    const int arity = ir::expr_arity(n.op);
    const bool skips =
        n.op == ir::ExprOp::select || n.op == ir::ExprOp::logical_and || n.op == ir::ExprOp::logical_or;
    if (arity > 0) pending_.push_back(n.a);
    if (always_only && skips) return;
    if (arity > 1) pending_.push_back(n.b);
    if (arity > 2) pending_.push_back(n.c);
  }

  const ir::Program& program_;
  std::vector<uint32_t> seen_;
  uint32_t round_ = 1;
  std::vector<ir::ExprId> pending_;
};

}  // namespace tilegen::check
