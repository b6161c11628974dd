#include "analysis/epilogue_tile.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "analysis/tensor_copy.h"
#include "analysis/warp_partition.h"
#include "layout/tensor_tile.h"

namespace tilegen::analysis {

namespace {

bool converts(ir::DType from, ir::DType to) {
  if (from == ir::DType::boolean || to == ir::DType::boolean) return false;
  return ir::dtype_bytes(from) <= 4 && ir::dtype_bytes(to) <= 4;
}

// How accumulators of warpgroup instructions lie over warpgroups, when the fragment is such, with rows of the
// tensor as rows of the instructions or as their columns; rows and columns of a warpgroup. All atoms of a
// target leave them in one way.
std::optional<EpilogueTile> accumulator_split(const layout::Fragment& f, const MatrixDims& m, bool transposed,
                                              const target::Target& t) {
  if (t.warpgroup_mma.empty() || f.threads() % t.warpgroup != 0) return std::nullopt;
  const target::WarpgroupAtom& atom = t.warpgroup_mma.front();
  const int64_t warpgroups = f.threads() / t.warpgroup, least_columns = atom.widths.front();
  const int64_t rows = m.shape[static_cast<size_t>(m.row)], columns = m.shape[static_cast<size_t>(m.col)];
  for (int64_t wm = warpgroups; wm >= 1; --wm) {
    const int64_t wn = warpgroups / wm;
    if (wm * wn != warpgroups || rows % (wm * atom.m) != 0 || columns % (wn * least_columns) != 0) continue;
    if (transposed && wm > 1 && wn > 1) continue;  // warpgroups count along the instructions' columns first
    const auto want =
        partitioned(atom.accumulator(static_cast<int>(columns / wn)), {{rows / (wm * atom.m), 1}, {wm, wn}},
                    {wm, wn, 1}, m, {rows, columns}, t.warpgroup);
    if (!f.equivalent(want)) continue;
    EpilogueTile s;
    s.rows = rows / wm;
    s.columns = columns / wn;
    s.warpgroups_m = wm;
    s.warpgroups_n = wn;
    s.transposed = transposed;
    if (transposed) std::swap(s.rows, s.columns), std::swap(s.warpgroups_m, s.warpgroups_n);
    return s;
  }
  return std::nullopt;
}

}  // namespace

std::optional<EpilogueTile> epilogue_tile(const ir::Program& p, const KernelOp& op,
                                          const layout::Fragment& source, const target::Target& t,
                                          std::string* reason) {
  auto refuse = [&](std::string why) {
    if (reason) *reason = std::move(why);
    return std::nullopt;
  };
  const auto* copy = p.as<ir::TileOp>(op.stmt);
  if (!copy || !ops::is_transfer(*copy)) return refuse("it is no copy");
  const ir::Buffer &from = p.buffer(copy->operands[0].buffer), &to = p.buffer(copy->operands[1].buffer);
  if (from.scope != ir::MemScope::fragment || to.scope != ir::MemScope::global)
    return refuse("it is no copy from a fragment to a tensor");
  if (!converts(from.type, to.type))
    return refuse(std::string("epilogue tiles have no form for ") + ir::dtype_name(from.type) +
                  " stored as " + ir::dtype_name(to.type));
  if (copy->operands[0].extents != p.tile_shape(copy->operands[0].buffer))
    return refuse("it copies a part of its fragment");
  const auto dims = tensor_copy_dims(p, *copy, reason);
  if (!dims) return std::nullopt;
  if (dims->tile_outer < 0) return refuse("the fragment has one row");
  auto s = accumulator_split(source, {source.shape(), dims->tile_outer, dims->tile_inner}, false, t);
  if (!s) s = accumulator_split(source, {source.shape(), dims->tile_inner, dims->tile_outer}, true, t);
  if (!s) return refuse("its source is not held as warpgroup instructions leave it");
  if (s->rows > layout::kMaxBoxExtent)
    return refuse("a warpgroup holds more than " + std::to_string(layout::kMaxBoxExtent) + " rows");
  if (!dims->box_of_rows(s->rows))
    return refuse("a warpgroup's " + std::to_string(s->rows) + " rows are no box of the tensor's dimensions");
  const int64_t bytes = ir::dtype_bytes(to.type);
  for (int width : std::views::reverse(layout::kBoxSwizzles)) {
    if (s->columns * bytes % width != 0) continue;
    s->inner = width / bytes;
    s->swizzle = width;
    s->least_columns = s->transposed ? std::max<int64_t>(s->inner, t.warpgroup_rows()) : s->inner;
    s->epilogue_columns = s->columns;
    s->part_bytes = s->rows * s->columns * bytes;
    return s;
  }
  return refuse("a warpgroup's " + std::to_string(s->columns * bytes) +
                " bytes of a row are no multiple of 32");
}

}  // namespace tilegen::analysis
