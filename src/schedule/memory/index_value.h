// What an index comes to at a point of an op's iterations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arith/prove.h"
#include "ir/program.h"

namespace tilegen::schedule {

// An index under the variables of a point; whatever else varies is the same for all threads, and 0.
class IndexValue {
  static constexpr int kMaxNodes = 256;  // of an index that are evaluated

 public:
  IndexValue(const ir::Program& p, const std::vector<ir::VarId>& vars, ir::ExprId index)
      : p_(p), vars_(vars), index_(index) {
    for (size_t d = 0; d < vars.size(); ++d)
      if (arith::depends_on(p.exprs, index, vars[d])) ++dims_, dim_ = d;
    is_variable_ = dims_ == 1 && p.exprs[index].op == ir::ExprOp::var;
  }

  std::optional<int64_t> at(std::span<const int64_t> point) {
    if (is_variable_) return point[dim_];
    if (dims_ > 1) return evaluated(point);
    const auto along = static_cast<size_t>(dims_ == 0 ? 0 : point[dim_]);
    if (values_.size() <= along) values_.resize(along + 1);
    if (!values_[along].known) values_[along] = {true, evaluated(point)};
    return values_[along].value;
  }

  // The dimension of points that is the index; negative: it is not one alone.
  int is_dim() const { return is_variable_ ? static_cast<int>(dim_) : -1; }
  bool depends_on(int dim) const {
    return arith::depends_on(p_.exprs, index_, vars_[static_cast<size_t>(dim)]);
  }

 private:
  struct Value {
    bool known = false;
    std::optional<int64_t> value;
  };

  std::optional<int64_t> evaluated(std::span<const int64_t> point) {
    point_ = point;
    left_ = kMaxNodes;
    const auto v = eval(index_);
    return v ? std::optional(v->i) : std::nullopt;
  }
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
  const ir::ExprId index_;
  size_t dims_ = 0, dim_ = 0;  // of points that it depends on, and the last of them
  bool is_variable_ = false;   // of that dimension
  std::vector<Value> values_;  // along it, where it is the only one
  std::span<const int64_t> point_;
  int left_ = 0;
};

}  // namespace tilegen::schedule
