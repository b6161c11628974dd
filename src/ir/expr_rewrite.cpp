#include <cassert>

#include "ir/expr.h"

namespace tilegen::ir {

// Post-order with a stack of our own: the pools may be one and the same, and substitution may make an
// expression deeper than the limit on what a program may state. Nodes are copied out, since making a node
// moves the arrays.
ExprId ExprRewriter::rewrite(ExprId root) {
  std::vector<ExprId> todo{root};
  while (!todo.empty()) {
    const ExprId id = todo.back();
    if (memo_.find(id)) {
      todo.pop_back();
      continue;
    }
    const ExprNode n = (*from_)[id];
    const bool is_load = n.op == ExprOp::load;
    const auto from_indices = is_load ? from_->indices(id) : std::span<const ExprId>();
    bool ready = true;
    const auto need = [&](ExprId operand) {
      if (!operand.valid() || memo_.find(operand)) return;
      todo.push_back(operand);
      ready = false;
    };
    for (ExprId index : from_indices) need(index);
    need(n.c), need(n.b), need(n.a);
    if (!ready) continue;
    todo.pop_back();

    const auto done = [&](ExprId operand) { return *memo_.find(operand); };
    ExprId result;
    switch (n.op) {
      case ExprOp::const_int:
        result = to_->const_int(n.imm, n.type);
        break;
      case ExprOp::const_float:
        result = to_->const_float(n.float_value(), n.type);
        break;
      case ExprOp::var:
        result = rewrite_var(n);
        break;
      case ExprOp::load: {
        std::vector<ExprId> indices;
        for (ExprId index : from_indices) indices.push_back(done(index));
        result = rewrite_load(n, indices);
        break;
      }
      default: {
        const auto operand = [&](ExprId id) { return id.valid() ? done(id) : ExprId(); };
        result = to_->operation(n, operand(n.a), operand(n.b), operand(n.c));
      }
    }
    memo_.insert(id, result);
  }
  return *memo_.find(root);
}

}  // namespace tilegen::ir
