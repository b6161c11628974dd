// What an index comes to at a point of an op's iterations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/program.h"

namespace tilegen::schedule {

// An index under the variables of a point; whatever else varies is the same for all threads, and 0.
class IndexValue {
  static constexpr int kMaxNodes = 256;  // of an index that are evaluated

 public:
  IndexValue(const ir::Program& p, const std::vector<ir::VarId>& vars) : p_(p), vars_(vars) {}

  std::optional<int64_t> at(ir::ExprId index, std::span<const int64_t> point) {
    point_ = point;
    left_ = kMaxNodes;
    if (const ir::ExprNode& n = p_.exprs[index]; n.op == ir::ExprOp::var) return value_of(n);
    const auto v = eval(index);
    return v ? std::optional(v->i) : std::nullopt;
  }

 private:
  int64_t value_of(const ir::ExprNode& var) const {
    const auto it = std::find(vars_.begin(), vars_.end(), var.var());
    return it == vars_.end() ? 0 : point_[static_cast<size_t>(it - vars_.begin())];
  }
  // Expressions are of bounded depth (ir/expr.h).
  std::optional<ir::ScalarValue> eval(ir::ExprId id) {
    if (--left_ < 0) return std::nullopt;
    const ir::ExprNode& n = p_.exprs[id];
    if (n.op == ir::ExprOp::const_int) return ir::ScalarValue{n.type, n.imm, 0};
    if (n.op == ir::ExprOp::var) return ir::ScalarValue{n.type, value_of(n), 0};
    if (n.op == ir::ExprOp::load || ir::is_float(n.type)) return std::nullopt;
    std::optional<ir::ScalarValue> operands[3];
    for (int i = 0; i < ir::expr_arity(n.op); ++i) {
      operands[i] = eval(i == 0 ? n.a : i == 1 ? n.b : n.c);
      if (!operands[i]) return std::nullopt;
    }
    const auto operand = [&](int i) { return operands[i].value_or(ir::ScalarValue()); };
    return ir::eval_operation(n.op, n.type, operand(0), operand(1), operand(2));
  }

  const ir::Program& p_;
  const std::vector<ir::VarId>& vars_;
  std::span<const int64_t> point_;
  int left_ = 0;
};

}  // namespace tilegen::schedule
