#include "cost/product_work.h"

#include <algorithm>

#include "ir/op_kinds.h"
#include "support/checked.h"
#include "target/operand_matrices.h"

namespace tilegen::cost {

using target::MmaAtom;

namespace {

constexpr int64_t kWordBytes = 4;

// Wavefronts of shared memory that a warp takes for one k step of an operand's atom.
int64_t load_wavefronts(const MmaAtom& atom, int side, const OperandSource& from, const target::Target& t) {
  const layout::Fragment& f = side == 0 ? atom.a_layout : atom.b_layout;
  const int64_t bytes = ir::dtype_bytes(side == 0 ? atom.a : atom.b);
  const int64_t of_words = ceil_div(t.warp * kWordBytes, t.banks.row_bytes());  // one of each lane
  if (!target::is_multiply_add(atom) && bytes == 1 && !from.along_k)
    return f.registers() * of_words;  // byte by byte
  // As 8x8 matrices, or by words: either fills 4 bytes of each lane.
  return std::max<int64_t>(1, ceil_div(f.registers() * bytes, kWordBytes)) * of_words;
}

// A warp gathers the places of each instruction's rows.
void gather_places(double words, const target::Target& t, ProductWork& w) {
  constexpr double kLoads = 2, kOperations = 12;
  w.loads += kLoads * words;
  w.sums += kOperations * words / t.schedulers;
}

}  // namespace

// Every instruction fetches its operands for itself.
ProductWork warpgroup_product(const analysis::GemmShape& s, const WarpgroupSplit& x,
                              const target::Target& t) {
  const int64_t reps = s.m / (x.atom->m * x.m), columns = s.n / x.n;
  const auto k_steps = static_cast<double>(s.k / x.atom->k);
  const double instructions = static_cast<double>(x.m * x.n * reps * (columns / x.width));
  const int64_t a_bytes = x.atom->m * x.atom->a_k() * ir::dtype_bytes(s.a),
                b_bytes = x.width * x.atom->k * ir::dtype_bytes(s.b);
  ProductWork w;
  w.product = instructions * x.width / 8 * x.atom->cycles_per_8 * k_steps;
  w.loads =
      instructions * static_cast<double>((x.a_shared ? a_bytes : 0) + b_bytes) / t.shared_bytes_per_cycle;
  // Copied: of the 8 rows that are read and written at once two lie in the same banks, but for reads of
  //   words.
  for (int side = 0; side < 2; ++side) {
    const int64_t bytes = ir::dtype_bytes(side == 0 ? s.a : s.b), passes = bytes == 1 ? 4 : 3;
    if (x.copied[side])
      w.loads += static_cast<double>((side == 0 ? s.m * x.atom->a_k() : s.n * x.atom->k) * bytes * passes) /
                 t.shared_bytes_per_cycle;
  }
  w.loads *= k_steps;
  if (s.promote)
    w.sums = static_cast<double>(s.m * s.n * ceil_div(s.k, ir::gemm_attr::kPromoted)) / t.plain_lanes;
  if (x.atom->sparse())
    gather_places(static_cast<double>(x.m * x.n * t.warpgroup_warps() * reps) * k_steps, t, w);
  return w;
}

ProductWork warp_product(const analysis::GemmShape& s, const MmaAtom& atom, const analysis::WarpGrid& g,
                         const OperandSource (&from)[2], const target::Target& t) {
  const analysis::WarpTile tile = analysis::warp_tile(s, atom, g);
  const double warps = static_cast<double>(g.m * g.n * g.copies);
  ProductWork w;
  w.product = warps * static_cast<double>(tile.m * tile.n * tile.k * atom.cycles) / t.schedulers;
  w.loads = static_cast<double>((from[0].shared ? tile.m * load_wavefronts(atom, 0, from[0], t) : 0) +
                                (from[1].shared ? tile.n * load_wavefronts(atom, 1, from[1], t) : 0)) *
            static_cast<double>(tile.k) * warps;
  if (atom.sparse()) gather_places(static_cast<double>(tile.m * tile.k) * warps, t, w);
  for (int side = 0; side < 2; ++side) {
    const int64_t elements = side == 0 ? s.m * g.n : s.n * g.m;
    w.sums += static_cast<double>(from[side].made_by * elements * s.k * g.copies) / t.plain_lanes;
  }
  return w;
}

double cycles_of(const ProductWork& w) {
  return std::max(w.product, w.loads) + 0.25 * std::min(w.product, w.loads) + w.sums;
}

}  // namespace tilegen::cost
