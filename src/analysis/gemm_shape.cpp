#include "analysis/gemm_shape.h"

#include "ir/op_kinds.h"
#include "ops/op.h"

namespace tilegen::analysis {

using ir::TileOp;

MatrixDims matrix_dims(const ir::Program& p, const ir::Region& r, bool transpose) {
  MatrixDims m;
  m.shape = p.tile_shape(r.buffer);
  const std::vector<int> dims = ops::matched_dims(r, 2);
  m.row = dims[0];
  m.col = dims[1];
  if (transpose) std::swap(m.row, m.col);
  return m;
}

GemmShape gemm_shape(const ir::Program& p, const TileOp& op) {
  MatrixDims b = matrix_dims(p, op.operands[1], op.flag(ir::gemm_attr::transpose_b));
  MatrixDims c = matrix_dims(p, op.operands[2], false);
  auto at = [&](int operand, int dim) {
    return op.operands[static_cast<size_t>(operand)].extents[static_cast<size_t>(dim)];
  };
  auto held = [&](size_t operand) {
    return p.buffer(op.operands[operand].buffer).scope == ir::MemScope::fragment;
  };
  const bool sparse = op.kind == ir::OpKind::gemm_sparse;
  return {at(2, c.row),
          at(2, c.col),
          at(1, b.row),
          p.buffer(op.operands[0].buffer).type,
          p.buffer(op.operands[1].buffer).type,
          p.buffer(op.operands[2].buffer).type,
          !sparse && op.flag(ir::gemm_attr::tf32),
          !sparse && op.flag(ir::gemm_attr::promote),
          held(1) && !held(0),
          sparse};
}

}  // namespace tilegen::analysis
