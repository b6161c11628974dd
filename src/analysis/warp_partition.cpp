#include "analysis/warp_partition.h"

#include <cassert>

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
  std::vector<Digit> digits = atom.map().digits();
  const int64_t size[2] = {atom.shape()[0], atom.shape()[1]};
  int64_t registers = atom.registers();
  auto add = [&](int dim, int64_t count, int64_t weight, int output, int64_t stride) {
    if (count > 1) digits.push_back({dim, count, weight, output, stride});
  };
  int64_t replicas = atom.replicas();
  for (int d : {1, 0}) {
    add(d, by.reps[d], size[d], kRegister, registers);
    registers *= by.reps[d];
  }
  // Warp = copy * (m * n) + row of warps * n + column.
  const int64_t count[2] = {g.m, g.n}, stride[2] = {lanes * g.n, lanes};
  for (int d : {1, 0}) {
    const bool own = by.warps[d] > 1;
    add(own ? d : kReplica, count[d], own ? size[d] * by.reps[d] : replicas, kThread, stride[d]);
    if (!own) replicas *= count[d];
  }
  add(kReplica, g.copies, replicas, kThread, lanes * g.m * g.n);
  // A gemm on a part: further parts follow in registers.
  const int64_t part[2] = {by.reps[0] * by.warps[0] * size[0], by.reps[1] * by.warps[1] * size[1]};
  for (int d : {1, 0}) {
    const int64_t whole = m.shape[static_cast<size_t>(d == 0 ? m.row : m.col)];
    if (whole <= extent[d]) continue;
    const int64_t parts = ceil_div(whole, extent[d]);
    add(d, parts, part[d], kRegister, registers);
    registers *= parts;
  }
  for (Digit& d : digits)
    if (d.dim != kReplica) d.dim = d.dim == 0 ? m.row : m.col;
  auto map = Layout::make(m.shape, std::move(digits), 2);
  assert(map && "warps and repeats of an atom are a mixed radix system");
  auto fragment = Fragment::make(*map, lanes * g.m * g.n * g.copies);
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
  return side == 0 ? partitioned(atom.a_layout, {{w.m, w.k}, {g.m, 1}}, g, m, {s.m, s.k}, lanes)
                   : partitioned(atom.b_layout, {{w.k, w.n}, {1, g.n}}, g, m, {s.k, s.n}, lanes);
}

}  // namespace tilegen::analysis
