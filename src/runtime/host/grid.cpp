#include "runtime/host/grid.h"

#include "support/checked.h"
#include "support/diag_codes.h"

namespace tilegen::runtime {
namespace {

using ir::ExprOp;
using ir::ScalarValue;

struct Evaluator {
  const thread::ThreadProgram& kernel;
  std::span<const uint64_t> params;

  ScalarValue param_value(ir::VarId var, ir::DType type) const {
    for (size_t i = 0; i < kernel.params.size(); ++i) {
      const thread::Param& p = kernel.params[i];
      if (p.kind == thread::Param::Kind::tensor || p.var != var) continue;
      if (p.kind == thread::Param::Kind::dim) return {ir::DType::i64, static_cast<int64_t>(params[i]), 0};
      if (!ir::is_float(type)) return {type, ir::wrap_to(type, static_cast<int64_t>(params[i])), 0};
      uint64_t mask = ~uint64_t{0} >> (64 - ir::dtype_bits(type));
      return {type, 0, ir::float_from_bits(type, params[i] & mask)};
    }
    return {type, 0, 0};  // verified programs have none
  }

  ScalarValue eval(ir::ExprId id) const {
    const ir::ExprNode& n = kernel.exprs[id];
    switch (n.op) {
      case ExprOp::const_int:
        return {n.type, n.imm, 0};
      case ExprOp::const_float:
        return {n.type, 0, n.float_value()};
      case ExprOp::var:
        return param_value(n.var(), n.type);
      case ExprOp::load:
        return {n.type, 0, 0};  // a grid reads parameters only
      case ExprOp::select:
        return eval(n.a).i ? eval(n.b) : eval(n.c);
      default:
        break;
    }
    const auto operand = [&](ir::ExprId e) { return e.valid() ? eval(e) : ir::ScalarValue(); };
    return ir::eval_operation(n.op, n.type, eval(n.a), operand(n.b), operand(n.c));
  }
};

}  // namespace

int64_t evaluate_launch_value(const thread::ThreadProgram& kernel, std::span<const uint64_t> params,
                              ir::ExprId value) {
  return Evaluator{kernel, params}.eval(value).i;
}

Expected<Grid> evaluate_grid(const thread::ThreadProgram& kernel, std::span<const uint64_t> params) {
  Evaluator evaluator{kernel, params};
  Grid grid;
  bool empty = false;
  for (size_t i = 0; i < kernel.grid.size() && i < grid.extents.size(); ++i) {
    grid.extents[i] = evaluator.eval(kernel.grid[i]).i;
    empty |= grid.extents[i] <= 0;
  }
  if (empty) return grid;
  auto blocks = checked_product(std::span(grid.extents).first(kernel.grid.size()));
  if (!blocks)
    return Error(DiagCode::overflow, kernel.name, "the number of blocks does not fit 64 bits",
                 "launch with smaller dimensions");
  grid.blocks = *blocks;
  return grid;
}

}  // namespace tilegen::runtime
