// A tile's fragment made of an instruction's: repeated over registers, then over the warps (or warpgroups) of
// a block.
#pragma once

#include "ops/gemm_plan.h"

namespace tilegen::ops {

// How the warps of a block share C: m x n of them, and copies where there are more.
struct WarpGrid {
  int64_t m = 1, n = 1, copies = 1;
};

// `along[d]` in warps: those that share dimension d; the others hold copies.
struct Spread {
  int64_t reps[2] = {1, 1}, warps[2] = {1, 1};
};

// A fragment of the buffer of `m` whose matrix has the extents `extent` (which the atoms may overhang), from
// an atom's: repeated over registers, the second dimension fastest, then over warps of `lanes` threads. A
// matrix that is a part of its buffer repeats over registers too.
layout::Fragment spread(const layout::Fragment& atom, const Spread& by, const WarpGrid& g,
                        const MatrixDims& m, const int64_t (&extent)[2], int64_t lanes);

// How a matrix instruction takes operand `side` of the product from registers, with C split over `g`.
layout::Fragment operand_fragment(const ir::Program& p, const ir::TileOp& op, const target::MmaAtom& atom,
                                  const WarpGrid& g, int side, int64_t lanes);

// Splits of `warps` over m, n and copies that the policy allows.
std::vector<WarpGrid> warp_grids(int64_t warps, ir::WarpPolicy policy);

}  // namespace tilegen::ops
