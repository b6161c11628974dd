// Engine and atom of a gemm, and the operand layouts the atom demands.
//
// requires: a checked gemm; its target and the block's computing threads.
// ensures: layouts over whole buffers; on GPUs the warp grid divides the tile exactly.
// refuses (no_atom, schedule_illegal): no row of the target's tables fits; a given atom or warp split is
// illegal.
#pragma once

#include <optional>

#include "ir/program.h"
#include "plan/schedule.h"
#include "target/target.h"
#include "thread/thread_program.h"

namespace tilegen::ops {

struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  ir::DType a = ir::DType::none, b = ir::DType::none, c = ir::DType::none;
  bool tf32 = false;  // the operands may be reduced to tf32
  bool promote = false;  // sums of instructions are added to C by plain additions
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

// Register tile of a host micro-kernel, the "8x32" of an atom name "fma.f32:8x32".
struct MicroTile {
  const target::MicroKernelAtom* atom = nullptr;
  int64_t mr = 1, nr = 1;
};
std::optional<MicroTile> micro_tile_from_name(const target::Target& t, std::string_view name);

struct GemmPlan {
  plan::Engine engine = plan::Engine::mma;
  std::string atom;
  int64_t warps_m = 1, warps_n = 1;
  layout::Fragment c;
  std::optional<layout::Fragment> a_fragment, b_fragment;  // operands in fragment scope
  std::optional<layout::Layout> a_memory, b_memory;        // operands in shared scope
  // Warpgroup instructions: copies of operands in shared memory, in the form that the instructions read,
  // where `a_memory` or `b_memory` is not in it. Two of each, used in turn.
  std::optional<layout::Layout> a_copy, b_copy;
  int64_t registers = 0;  // GPUs: 32-bit registers a thread needs for it, accumulators included
  double cycles = 0;      // GPUs: of a multiprocessor, by the cost model
  int64_t own_registers = 0;  // of them: beside what holds C, A and B, while it runs
  std::string reason;
  std::string note;  // why a better engine of the target does not do it, or empty
};

// The split of a tile over warps that a given plan asks for, as far as it says one.
inline bool is_split(const plan::OpPlan& given, int64_t m, int64_t n) {
  return (given.warps_m == 0 || given.warps_m == m) && (given.warps_n == 0 || given.warps_n == n);
}
std::string split_text(const plan::OpPlan& given);

// `given` may fix the engine, the atom and the warp split. `no_warpgroups`: why warpgroup instructions cannot
// do it (their tiles do not come by tensor copies, schedule/tensor_copy_plan.h), or empty.
Expected<GemmPlan> plan_gemm(const ir::Program& p, const ir::TileOp& op, const target::Target& target,
                             int64_t threads, const plan::OpPlan* given, const std::string& path,
                             const SourceLocation& location, const std::string& no_warpgroups = "");

// NVIDIA's part of plan_gemm (gemm_plan_nvidia.cpp): every row of the table and every split over warps is
// weighed by issue cycles, shared memory traffic and registers. Warps that a small tile has no use for hold
// copies. Where no matrix instruction divides the tile those on one padded along m and n are weighed too,
// then, where nothing does, plain multiply-adds on a padded one. Warpgroup instructions come first where they
// can do it.
Expected<GemmPlan> plan_nvidia_gemm(const ir::Program& p, const ir::TileOp& op, const GemmShape& s,
                                    const target::Target& t, int64_t threads, const plan::OpPlan* given,
                                    const std::string& path, const SourceLocation& location,
                                    const std::string& no_warpgroups);

// Plain multiply-adds on registers in the form of an atom.
inline bool is_multiply_add(const target::MmaAtom& atom) { return atom.name.starts_with("fma."); }

// An 8x8 matrix of 16-bit units of an atom's operand, as ldmatrix hands it out: rows along m or n, units
// along k.
struct OperandMatrix {
  int64_t row = 0, k = 0;  // of its first element
};
// Matrix i fills registers [i * e, (i + 1) * e) of every lane, e = 4 / element bytes. Empty: the operand does
// not have that form.
std::vector<OperandMatrix> operand_matrices(const target::MmaAtom& atom, int side);

// Hopper's part (gemm_plan_warpgroup.cpp): wgmma, where the target has it and the tile divides into rows of
// 64 over whole warpgroups. Warpgroups split rows first; every split and width is weighed by shared memory
// traffic, as long as the accumulators fit a thread's registers. Nothing, with a reason, where it is not
// legal. That both tiles come by tensor copies the caller has seen to.
std::optional<GemmPlan> plan_warpgroup_gemm(const ir::Program& p, const ir::TileOp& op, const GemmShape& s,
                                            const target::Target& t, int64_t threads,
                                            const plan::OpPlan* given, std::string* reason);

// A tile of fewer rows than the instructions have is multiplied as C^T = B^T A^T: B in the place of A,
// columns as rows.
inline bool swaps_operands(const GemmShape& s) { return s.m % 64 != 0; }

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
struct TurnedBlock {
  int64_t k = 0, rows = 0;
};
inline TurnedBlock turned_block(int element_bytes) {
  return element_bytes == 1 ? TurnedBlock{16, 32} : TurnedBlock{32, 16};
}
// The name of a copy's place among those of the schedule.
inline std::string k_major_copy_name(const std::string& op, int side) {
  return op + (side == 0 ? ":a" : ":b");
}

// Whether elements along k lie beside each other in a buffer of this form.
inline bool k_is_contiguous(const MatrixDims& m, int side) {
  return (side == 0 ? m.col : m.row) + 1 == static_cast<int>(m.shape.size());
}

}  // namespace tilegen::ops
