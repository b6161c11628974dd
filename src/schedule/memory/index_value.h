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
  IndexValue(const ir::Program& p, const std::vector<ir::VarId>& vars) : p_(p), vars_(vars) {}

  std::optional<int64_t> at(ir::ExprId index, std::span<const int64_t> point) {
    point_ = point;
    if (const ir::ExprNode& n = p_.exprs[index]; n.op == ir::ExprOp::var) return value_of(n);
    Index& known = known_of(index);
    if (known.dims > 1) return evaluated(index);
    const auto along = static_cast<size_t>(known.dims == 0 ? 0 : point_[known.dim]);
    if (known.values.size() <= along) known.values.resize(along + 1);
    Value& value = known.values[along];
    if (!value.known) value = {true, evaluated(index)};
    return value.value;
  }

  // The dimension of points that is the index; negative: it is not one alone.
  int dim_of(ir::ExprId index) const {
    const ir::ExprNode& n = p_.exprs[index];
    const auto it = std::find(vars_.begin(), vars_.end(), n.op == ir::ExprOp::var ? n.var() : ir::VarId());
    return it == vars_.end() ? -1 : static_cast<int>(it - vars_.begin());
  }
  bool depends_on(ir::ExprId index, int dim) const {
    return arith::depends_on(p_.exprs, index, vars_[static_cast<size_t>(dim)]);
  }

 private:
  struct Value {
    bool known = false;
    std::optional<int64_t> value;
  };
  // What an index comes to along the one dimension of points that it depends on, if no more.
  struct Index {
    ir::ExprId index;
    int dims = 0;
    size_t dim = 0;
    std::vector<Value> values;
  };

  Index& known_of(ir::ExprId index) {
    for (Index& i : indices_)
      if (i.index == index) return i;
    Index& i = indices_.emplace_back();
    i.index = index;
    for (size_t d = 0; d < vars_.size(); ++d)
      if (depends_on(index, static_cast<int>(d))) ++i.dims, i.dim = d;
    return i;
  }
  std::optional<int64_t> evaluated(ir::ExprId index) {
    left_ = kMaxNodes;
    const auto v = eval(index);
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
  std::span<const int64_t> point_;
  int left_ = 0;
  std::vector<Index> indices_;
};

}  // namespace tilegen::schedule
