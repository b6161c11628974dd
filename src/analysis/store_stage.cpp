#include "analysis/store_stage.h"

#include <algorithm>

#include "analysis/tensor_copy.h"
#include "analysis/warp_partition.h"

namespace tilegen::analysis {

namespace {

constexpr int64_t kWarpgroup = 128, kRows = 64, kColumns = 8, kBoxExtent = 256;

bool converts(ir::DType from, ir::DType to) {
  if (from == ir::DType::boolean || to == ir::DType::boolean) return false;
  return ir::dtype_bytes(from) <= 4 && ir::dtype_bytes(to) <= 4;
}

// How wgmma's accumulators lie over warpgroups, when the fragment is such; rows and columns of a warpgroup.
std::optional<StoreStage> accumulator_split(const layout::Fragment& f, const MatrixDims& m) {
  if (f.threads() % kWarpgroup != 0) return std::nullopt;
  const int64_t warpgroups = f.threads() / kWarpgroup;
  const int64_t rows = m.shape[static_cast<size_t>(m.row)], columns = m.shape[static_cast<size_t>(m.col)];
  for (int64_t wm = warpgroups; wm >= 1; --wm) {
    const int64_t wn = warpgroups / wm;
    if (wm * wn != warpgroups || rows % (wm * kRows) != 0 || columns % (wn * kColumns) != 0) continue;
    const auto atom = target::warpgroup_accumulator(static_cast<int>(columns / wn));
    const auto want =
        partitioned(atom, {{rows / (wm * kRows), 1}, {wm, wn}}, {wm, wn, 1}, m, {rows, columns}, kWarpgroup);
    if (!f.equivalent(want)) continue;
    StoreStage s;
    s.rows = rows / wm;
    s.columns = columns / wn;
    s.warpgroups_m = wm;
    s.warpgroups_n = wn;
    return s;
  }
  return std::nullopt;
}

}  // namespace

std::optional<StoreStage> store_stage(const ir::Program& p, const KernelOp& op,
                                      const layout::Fragment& source, std::string* reason) {
  auto refuse = [&](std::string why) {
    if (reason) *reason = std::move(why);
    return std::nullopt;
  };
  const auto* copy = p.as<ir::TileOp>(op.stmt);
  if (!copy || !ops::is_copy(*copy)) return refuse("it is no copy");
  const ir::Buffer &from = p.buffer(copy->operands[0].buffer), &to = p.buffer(copy->operands[1].buffer);
  if (from.scope != ir::MemScope::fragment || to.scope != ir::MemScope::global)
    return refuse("it is no copy from a fragment to a tensor");
  if (!converts(from.type, to.type))
    return refuse(std::string("the copy takes ") + ir::dtype_name(from.type) + " to " +
                  ir::dtype_name(to.type));
  if (copy->operands[0].extents != p.tile_shape(copy->operands[0].buffer))
    return refuse("it copies a part of its fragment");
  const auto dims = tensor_copy_dims(p, *copy, reason);
  if (!dims) return std::nullopt;
  if (dims->tile_outer < 0) return refuse("the fragment has one row");
  auto s = accumulator_split(source, {source.shape(), dims->tile_outer, dims->tile_inner});
  if (!s) return refuse("its source is not held as warpgroup instructions leave it");
  if (s->rows > kBoxExtent) return refuse("a warpgroup holds more than 256 rows");
  const int64_t bytes = ir::dtype_bytes(to.type);
  for (int width : {128, 64, 32}) {
    if (s->columns * bytes % width != 0) continue;
    s->inner = width / bytes;
    s->swizzle = width;
    s->pass_columns = s->columns;
    s->part_bytes = s->rows * s->columns * bytes;
    return s;
  }
  return refuse("a warpgroup's " + std::to_string(s->columns * bytes) +
                " bytes of a row are no multiple of 32");
}

}  // namespace tilegen::analysis
