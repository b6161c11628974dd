#include "ops/gemm_spread.h"

#include <cassert>

#include "support/checked.h"

namespace tilegen::ops {

using layout::Digit;
using layout::Fragment;
using layout::kRegister;
using layout::kReplica;
using layout::kThread;
using layout::Layout;

Fragment spread(const Fragment& atom, const Spread& by, const WarpGrid& g, const MatrixDims& m,
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

std::vector<WarpGrid> warp_grids(int64_t warps, ir::WarpPolicy policy) {
  std::vector<WarpGrid> list;
  for (int64_t m = 1; m <= warps; ++m)
    for (int64_t n = 1; m * n <= warps; ++n) {
      if (warps % (m * n) != 0) continue;
      if (policy == ir::WarpPolicy::full_row && n != 1) continue;
      if (policy == ir::WarpPolicy::full_col && m != 1) continue;
      list.push_back({m, n, warps / (m * n)});
    }
  return list;
}

}  // namespace tilegen::ops
