#include "analysis/warp_partition.h"

#include <cassert>

#include "ir/op_kinds.h"
#include "support/checked.h"

namespace tilegen::analysis {

using ir::TileOp;
using layout::Digit;
using layout::Fragment;
using layout::kRegister;
using layout::kReplica;
using layout::kThread;
using layout::Layout;
using target::MmaAtom;

WarpTile warp_tile(const GemmShape& s, const MmaAtom& atom, const WarpGrid& g) {
  return {ceil_div(s.m, g.m * atom.m), ceil_div(s.n, g.n * atom.n), ceil_div(s.k, int64_t{atom.k})};
}

Fragment partitioned(const Fragment& atom, const Partition& by, const WarpGrid& g, const MatrixDims& m,
                     const int64_t (&extent)[2], int64_t lanes) {
  constexpr int kColumnsFirst[] = {1, 0};
  const int64_t reps[] = {by.reps[0], by.reps[1]};
  Fragment f = atom.repeat(reps, kColumnsFirst);
  assert(f.threads() == lanes);
  // Warp = copy * (m * n) + row of warps * n + column.
  const int64_t warps[2] = {g.m, g.n};
  for (int d : kColumnsFirst) {
    int64_t along[] = {1, 1};
    along[d] = warps[d];
    if (warps[d] > 1) f = by.warps[d] > 1 ? f.repeat_on_thread(along, kColumnsFirst) : f.replicate(warps[d]);
  }
  if (g.copies > 1) f = f.replicate(g.copies);
  // A gemm on a part: further parts follow in registers.
  int64_t parts[] = {1, 1};
  for (int d : {0, 1})
    parts[d] =
        std::max<int64_t>(1, ceil_div(m.shape[static_cast<size_t>(d == 0 ? m.row : m.col)], extent[d]));
  f = f.repeat(parts, kColumnsFirst);
  std::vector<Digit> digits = f.map().digits();
  for (Digit& d : digits)
    if (d.dim != kReplica) d.dim = d.dim == 0 ? m.row : m.col;
  auto map = Layout::make(m.shape, std::move(digits), 2);
  assert(map && "warps and repeats of an atom are a mixed radix system");
  auto fragment = Fragment::make(*map, f.threads());
  assert(fragment && "warps and repeats of an atom are a fragment");
  return *fragment;
}

MatrixDims operand_dims(const ir::Program& p, const TileOp& op, int side) {
  return matrix_dims(p, op.operands[static_cast<size_t>(side)],
                     op.flag(side == 0 ? ir::gemm_attr::transpose_a : ir::gemm_attr::transpose_b));
}

layout::Fragment operand_fragment(const ir::Program& p, const TileOp& op, const MmaAtom& atom,
                                  const WarpGrid& g, int side, int64_t lanes) {
  const GemmShape s = gemm_shape(p, op);
  const WarpTile w = warp_tile(s, atom, g);
  const MatrixDims m = operand_dims(p, op, side);
  return side == 0 ? partitioned(atom.a_layout, {{w.m, w.k}, {g.m, 1}}, g, m, {s.m, s.a_k()}, lanes)
                   : partitioned(atom.b_layout, {{w.k, w.n}, {1, g.n}}, g, m, {s.k, s.n}, lanes);
}

}  // namespace tilegen::analysis
