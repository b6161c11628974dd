// A tile's fragment made of an instruction's: repeated over registers, then over the warps (or warpgroups) of
// a block.
#pragma once

#include "analysis/gemm_shape.h"
#include "layout/fragment.h"
#include "target/target.h"

namespace tilegen::analysis {

// How the warps of a block share C: m x n of them, and copies where there are more.
struct WarpGrid {
  int64_t m = 1, n = 1, copies = 1;
};

// What a warp does: atoms along each dimension.
struct WarpTile {
  int64_t m = 0, n = 0, k = 0;
};
WarpTile warp_tile(const GemmShape& s, const target::MmaAtom& atom, const WarpGrid& g);

// `warps[d]`: those that share dimension d; the others hold copies.
struct Partition {
  int64_t reps[2] = {1, 1}, warps[2] = {1, 1};
};

// A fragment of the buffer of `m` whose matrix has the extents `extent` (which the atoms may overhang), from
// an atom's: repeated over registers, the second dimension fastest, then over warps of `lanes` threads. A
// matrix that is a part of its buffer repeats over registers too.
layout::Fragment partitioned(const layout::Fragment& atom, const Partition& by, const WarpGrid& g,
                             const MatrixDims& m, const int64_t (&extent)[2], int64_t lanes);

// Operand `side` of the product: 0 for A, 1 for B.
MatrixDims operand_dims(const ir::Program& p, const ir::TileOp& op, int side);

// How a matrix instruction takes operand `side` of the product from registers, with C split over `g`.
layout::Fragment operand_fragment(const ir::Program& p, const ir::TileOp& op, const target::MmaAtom& atom,
                                  const WarpGrid& g, int side, int64_t lanes);

}  // namespace tilegen::analysis
