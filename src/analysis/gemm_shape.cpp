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
  MatrixDims a = matrix_dims(p, op.operands[0], op.flag(ir::gemm_attr::transpose_a));
  MatrixDims c = matrix_dims(p, op.operands[2], false);
  auto at = [&](int operand, int dim) {
    return op.operands[static_cast<size_t>(operand)].extents[static_cast<size_t>(dim)];
  };
  auto held = [&](size_t operand) {
    return p.buffer(op.operands[operand].buffer).scope == ir::MemScope::fragment;
  };
  return {at(2, c.row),
          at(2, c.col),
          at(0, a.col),
          p.buffer(op.operands[0].buffer).type,
          p.buffer(op.operands[1].buffer).type,
          p.buffer(op.operands[2].buffer).type,
          op.flag(ir::gemm_attr::tf32),
          op.flag(ir::gemm_attr::promote),
          held(1) && !held(0)};
}

}  // namespace tilegen::analysis
