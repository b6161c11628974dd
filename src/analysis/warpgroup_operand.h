// Operands in shared memory as warpgroup instructions read them: rows of one swizzle width, box after box.
//
// Instructions that read their operands along k only take a copy where one lies along m or n.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/gemm_shape.h"
#include "layout/layout.h"
#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::analysis {

// An operand's dimensions: rows are those of m or n, `inner` the one whose elements lie beside each other.
struct OperandSide {
  MatrixDims dims;
  int rows = 0, k = 1;
  int64_t together = 0;  // elements along inner() that every copy into the tile is whole runs of; 0: all
  bool k_major() const { return k > rows; }
  int inner() const { return std::max(rows, k); }
  int outer() const { return std::min(rows, k); }
  int64_t extent(int dim) const { return dims.shape[static_cast<size_t>(dim)]; }
};

OperandSide side_of(const MatrixDims& m, int side);

// The operand as boxes of rows of one swizzle width, one box after the other. `part`: rows of one
// instruction. Nothing where no swizzle width divides the rows.
std::optional<layout::Layout> boxed_operand(const OperandSide& s, int64_t part, int element_bytes);

// An operand in shared memory as wgmma addresses it.
struct WarpgroupOperand {
  thread::MatrixForm form;
  std::vector<int64_t> steps;  // elements from the operand's first element to that of each k step
  int64_t row_stride = 0;      // elements from 64 rows of A (n columns of B) to the next: `rows`
};
// `side` 0: A, in parts of 64 rows; 1: B, in parts of `n` columns. `k`: of the instruction. Nothing when the
// layout is none that the instruction reads.
std::optional<WarpgroupOperand> warpgroup_operand_form(const layout::Layout& l, const MatrixDims& dims,
                                                       int side, int element_bytes, int64_t part, int64_t k);

// A copy with k as the fast dimension of an operand in shared memory along m or n, for instructions that read
// no other.
struct KMajorCopy {
  layout::Layout layout;
  MatrixDims dims;  // of the copy
  int64_t rows = 0, k = 0;
};
// `side`: of the op; `part`: rows of an instruction. Nothing where blocks that a warp turns do not divide the
// extents.
std::optional<KMajorCopy> k_major_copy(const MatrixDims& dims, int side, int element_bytes, int64_t part);
bool needs_k_major_copy(const target::WarpgroupAtom& atom, const MatrixDims& dims, int side);
// What a warp turns at once: k and rows.
struct TransposeTile {
  int64_t k = 0, rows = 0;
};
inline TransposeTile transposed_block(int element_bytes) {
  return element_bytes == 1 ? TransposeTile{16, 32} : TransposeTile{32, 16};
}

}  // namespace tilegen::analysis
