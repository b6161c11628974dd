// A gemm as matrices: extents, types, and which dimensions of its operands are rows and columns.
#pragma once

#include <vector>

#include "ir/program.h"
#include "target/target.h"

namespace tilegen::analysis {

struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  ir::DType a = ir::DType::none, b = ir::DType::none, c = ir::DType::none;
  bool tf32 = false;     // the operands may be reduced to tf32
  bool promote = false;  // sums of instructions are added to C by plain additions
  bool b_held = false;   // B alone is in registers
  bool sparse = false;   // A holds two values of each four along k

  int64_t a_k() const { return sparse ? k / 2 : k; }  // extent of A's tile
};
GemmShape gemm_shape(const ir::Program& p, const ir::TileOp& op);

// `shape` is the buffer's, of which a gemm may use a part. Which buffer dimensions of a gemm operand are the
// rows and columns of its matrix, after `transpose`; the others have extent 1.
struct MatrixDims {
  std::vector<int64_t> shape;
  int row = 0, col = 1;
  template <class T>
  std::vector<T> at(T r, T c, T zero) const {
    std::vector<T> index(shape.size(), zero);
    index[static_cast<size_t>(row)] = r;
    index[static_cast<size_t>(col)] = c;
    return index;
  }
};
MatrixDims matrix_dims(const ir::Program& p, const ir::Region& r, bool transpose);

// Whether elements along k lie beside each other in a buffer of this form.
inline bool k_is_contiguous(const MatrixDims& m, int side) {
  return (side == 0 ? m.col : m.row) + 1 == static_cast<int>(m.shape.size());
}

// A tile of fewer rows than the instructions have is multiplied as C^T = B^T A^T: B in the place of A,
// columns as rows. So is one whose B is in registers, which is where the instructions take A from alone. A
// sparse A keeps its place: the instructions have none for a sparse B.
inline bool swaps_operands(const GemmShape& s, const target::Target& t) {
  return !s.sparse && (s.b_held || s.m % t.warpgroup_rows() != 0);
}

}  // namespace tilegen::analysis
