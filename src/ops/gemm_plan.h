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

namespace tilegen::ops {

struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  ir::DType a = ir::DType::none, b = ir::DType::none, c = ir::DType::none;
};
GemmShape gemm_shape(const ir::Program& p, const ir::TileOp& op);

// Which buffer dimensions of a gemm operand are the rows and columns of its matrix, after `transpose`; the
// others have extent 1.
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
  std::string reason;
};

// `given` may fix the atom and the warp split.
Expected<GemmPlan> plan_gemm(const ir::Program& p, const ir::TileOp& op, const target::Target& target,
                             int64_t threads, const plan::OpPlan* given, const std::string& path,
                             const SourceLocation& location);

}  // namespace tilegen::ops
