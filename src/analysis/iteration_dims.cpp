#include "analysis/iteration_dims.h"

#include "analysis/gemm_shape.h"
#include "ir/op_kinds.h"
#include "ops/element_view.h"
#include "ops/op.h"

namespace tilegen::analysis {

namespace {

enum : int { kM, kN, kK };

std::vector<std::vector<int>> of_product(const ir::Program& p, const ir::TileOp& op) {
  const auto dims = [&](size_t operand, bool transpose, int row, int col) {
    return matrix_dims(p, op.operands[operand], transpose).at(row, col, -1);
  };
  std::vector<std::vector<int>> all = {dims(0, op.flag(ir::gemm_attr::transpose_a), kM, kK),
                                       dims(1, op.flag(ir::gemm_attr::transpose_b), kK, kN),
                                       dims(2, false, kM, kN)};
  if (op.kind == ir::OpKind::gemm_sparse) all.push_back(dims(3, false, kM, kK));  // places of A's values
  return all;
}

std::vector<std::vector<int>> of_reduction(const ir::TileOp& op, const ops::Reduction& r) {
  std::vector<int> src, dst(op.operands[1].extents.size(), -1);
  for (size_t d = 0; d < op.operands[0].extents.size(); ++d) {
    src.push_back(static_cast<int>(d));
    if (d < r.dst_dims.size() && r.dst_dims[d] >= 0)
      dst[static_cast<size_t>(r.dst_dims[d])] = static_cast<int>(d);
  }
  return {std::move(src), std::move(dst)};
}

}  // namespace

IterationDims iteration_dims(const ir::Program& p, const ir::TileOp& op) {
  IterationDims out;
  const ops::LayoutRule rule = ops::layout_rule(op);
  switch (rule.form) {
    case ops::OpForm::contraction:
      out.dim_of = of_product(p, op);
      out.reduced = kK;
      break;
    case ops::OpForm::reduction:
      out.dim_of = of_reduction(op, *rule.reduction);
      out.reduced = rule.reduction->axis;
      break;
    case ops::OpForm::element:
      out.dim_of = ops::match_regions(p, op.operands).dim_of;
      if (rule.scan) out.reduced = rule.scan->axis;
      break;
  }
  out.reads.resize(op.operands.size());
  out.writes.resize(op.operands.size());
  for (const ops::OperandAccess& a : ops::op_def(op.kind).accesses(op)) {
    const auto o = static_cast<size_t>(a.operand);
    out.reads[o] = out.reads[o] || a.access != ir::Access::write;
    out.writes[o] = out.writes[o] || a.access != ir::Access::read;
  }
  return out;
}

}  // namespace tilegen::analysis
