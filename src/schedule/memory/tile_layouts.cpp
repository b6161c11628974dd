// A tile that is written along its rows and read along its columns: 32 lanes of a warp read elements that lie
// a row of 256 bytes apart, in the same bank.
//
//   row-major          (i, j) at 64 * i + j                       a read takes up to 32 transactions
//   swizzle(3,4,6)     units of 16 bytes XORed by i / 4 % 8       1, and rows are written in units as before
//
// A tile that the copy engine fills or stores has the engine's boxes to choose from.
//
// What is refused: tiles whose layout an instruction or the caller's schedule tells.
#include "schedule/memory/tile_layouts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <optional>

#include "analysis/tensor_copy.h"
#include "layout/tensor_tile.h"
#include "schedule/memory/matrix_stores.h"
#include "schedule/memory/tile_accesses.h"
#include "schedule/memory/tile_conflicts.h"
#include "support/checked.h"
#include "target/operand_matrices.h"

namespace tilegen::schedule {

using analysis::KernelOp;
using analysis::OpId;
using analysis::ValueId;
using layout::Layout;

std::vector<Layout> tile_layout_candidates(const std::vector<int64_t>& shape, int element_bytes,
                                           int64_t widest) {
  constexpr int kUsualShift = 3;  // that of the copy engine's swizzles
  const Layout plain = Layout::row_major(shape);
  std::vector<Layout> list = {plain};
  if (shape.empty()) return list;
  const size_t rows = row_dim(shape);
  const int64_t unit = widest * element_bytes, row = shape[rows] * element_bytes;
  const int64_t tile = plain.output_extent(0) * element_bytes;
  const int base = std::countr_zero(static_cast<uint64_t>(unit));
  // What lies side by side are whole units where rows and units are powers of two: the swizzle moves units.
  const auto is_power = [](int64_t n) { return n > 0 && std::has_single_bit(static_cast<uint64_t>(n)); };
  const bool whole_units = is_power(unit) && is_power(shape[rows]) && shape[rows] % widest == 0;
  const auto keeps_units = [&](const Layout& l) {
    return whole_units || l.contiguous_run(static_cast<int>(rows)) % widest == 0;
  };
  for (int64_t span : layout::kBoxSwizzles) {
    const int bits = std::countr_zero(static_cast<uint64_t>(span)) - base;
    if (bits < 1 || tile % span != 0) continue;
    std::vector<int> shifts;
    for (int s = bits; int64_t{1} << (base + s) < tile; ++s) shifts.push_back(s);
    std::stable_partition(shifts.begin(), shifts.end(), [&](int s) { return base + s == 4 + kUsualShift; });
    for (int s : shifts)
      if (auto l = plain.with_swizzle({bits, base, s}, element_bytes); l && keeps_units(*l))
        list.push_back(std::move(*l));
  }
  if (rows == 0 || row == 0) return list;
  const std::span<const int64_t> walked(shape.data(), rows + 1);
  const int64_t whole = ceil_div(row, unit) * unit;
  for (int64_t padded : {whole, whole + unit, whole + 2 * unit, whole + 4 * unit})
    if (padded > row && (padded - row) % element_bytes == 0) {
      const Layout l = Layout::padded_row_major(walked, (padded - row) / element_bytes);
      if (auto whole_shape = Layout::make(shape, l.digits(), 1)) list.push_back(std::move(*whole_shape));
    }
  return list;
}

namespace {

// No product reads the tile where it lies.
bool is_of_threads(const analysis::KernelOps& ops, ValueId value, const infer::InferResult& r) {
  const plan::ValuePlan& v = r.values[value];
  if (!v.memory || v.origin != plan::Origin::free) return false;
  return std::none_of(ops.ops.begin(), ops.ops.end(), [&](const KernelOp& op) {
    return op.form == analysis::OpForm::contraction &&
           std::any_of(op.accesses.begin(), op.accesses.end(),
                       [&](const auto& a) { return a.value == value; });
  });
}

// Copies between a tensor and the tile that the copy engine makes.
std::vector<analysis::TensorCopyDims> engine_copies(const ir::Program& p, const analysis::KernelOps& ops,
                                                    ValueId value, const infer::InferResult& r) {
  std::vector<analysis::TensorCopyDims> list;
  for (OpId o : ops.ops.ids()) {
    const auto* op = p.as<ir::TileOp>(ops.ops[o].stmt);
    if (!op || r.ops[o].engine != plan::Engine::tensor_copy) continue;
    for (const analysis::OpAccess& a : ops.ops[o].accesses)
      if (a.value == value)
        if (const auto dims = analysis::tensor_copy_dims(p, *op, nullptr)) list.push_back(*dims);
  }
  return list;
}

// Boxes of the copy engine: rows of 32, 64 or 128 bytes whose 16-byte units it permutes as it fills them.
std::vector<Layout> boxed_candidates(const std::vector<int64_t>& shape, int element_bytes, int64_t widest,
                                     const std::vector<analysis::TensorCopyDims>& copies) {
  std::vector<Layout> list = {Layout::row_major(shape)};
  const analysis::TensorCopyDims& first = copies.front();
  for (int width : layout::kBoxSwizzles)
    if (first.tile_outer >= 0)
      if (auto l = layout::boxed_tile(shape, first.tile_inner, first.tile_outer, element_bytes, width))
        list.push_back(std::move(*l));
  std::erase_if(list, [&](const Layout& l) {
    return l.contiguous_run(static_cast<int>(row_dim(shape))) % widest != 0 ||
           std::any_of(copies.begin(), copies.end(), [&](const analysis::TensorCopyDims& c) {
             return !analysis::tensor_boxes(c, l, element_bytes, nullptr);
           });
  });
  return list;
}

struct Choice {
  TileTransactions count;
  Layout layout;
};
// Another layout in its place where one takes fewer transactions.
void choose(const std::vector<Layout>& list, TileConflicts& counter,
            const std::function<bool(const Layout&)>& fits, Choice& best) {
  for (const Layout& l : list) {
    const TileTransactions c = counter.count(l, best.count.weighed * (1 - 1e-9));
    if (c.weighed >= best.count.weighed * (1 - 1e-9) || !fits(l)) continue;
    best = {c, l};
    if (!c.conflicts) break;
  }
}

std::string reason_of(const TileTransactions& chosen, const TileTransactions& before, const Layout& layout) {
  const int64_t tenths = std::llround(10 * before.weighed / chosen.weighed);
  const std::string text = std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
  return (chosen.conflicts ? "fewest bank conflicts of its threads' accesses"
                           : "no bank conflicts of its threads' accesses") +
         std::string(layout == Layout::row_major(layout.shape()) ? "; row-major takes "
                                                                 : "; plainer boxes take ") +
         text + " times the transactions";
}

}  // namespace

void plan_tile_layouts(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                       const std::set<ValueId>& engine_values, const TileFits& fits, infer::InferResult& r) {
  if (!t.has_block_threads()) return;
  for (ValueId value : r.values.ids()) {
    if (!is_of_threads(ops, value, r)) continue;
    const auto boxes = engine_copies(p, ops, value, r);
    if (boxes.empty() && engine_values.count(value)) continue;
    plan::ValuePlan& tile = r.values[value];
    const std::vector<int64_t> shape = tile.memory->shape();
    const int bytes = ir::dtype_bytes(p.buffer(ops.values[value].buffer).type);
    const auto accesses_with = [&](bool joined) {
      TileAccesses accesses = accesses_of_tile(p, ops, value, r.values, r.ops, t, joined);
      for (OpId o : ops.ops.ids())
        if (ops.value_of(ops.ops[o], ops.values[value].buffer) == value &&
            can_store_matrices(p, ops, ops.ops[o], t, r.values, r.conversions, r.ops[o]))
          accesses.widest = std::max<int64_t>(accesses.widest, target::kMatrixRowBytes / bytes);
      return accesses;
    };
    const Layout before = *tile.memory;
    std::optional<Choice> best;
    TileTransactions plain;
    for (const bool joined : {true, false}) {
      const TileAccesses accesses = accesses_with(joined);
      TileConflicts counter(accesses, shape, bytes, t.banks);
      const TileTransactions as_it_is = counter.count(before, INFINITY);
      if (joined) plain = as_it_is;
      if (joined) best = Choice{as_it_is, before};
      if (!best->count.conflicts || (!joined && !accesses.apart)) break;
      const auto list = boxes.empty() ? tile_layout_candidates(shape, bytes, accesses.widest)
                                      : boxed_candidates(shape, bytes, accesses.widest, boxes);
      choose(
          list, counter, [&](const Layout& l) { return fits(value, l); }, *best);
    }
    if (best->layout == before) continue;
    tile.memory = best->layout;
    const bool declared =
        ops.values[value].scope == ir::MemScope::shared;  // others say why they are in memory
    tile.reason = (declared ? "" : tile.reason + "; ") + reason_of(best->count, plain, before);
  }
}

}  // namespace tilegen::schedule
