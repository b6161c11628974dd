#include "cost/outside.h"

#include <algorithm>

namespace tilegen::cost {

namespace {

// Tiles of a dimension that are looked at: those in front of them lie inside.
constexpr int64_t kLastTiles = 4;

class Outside {
 public:
  Outside(const PlannedKernel& k, const ir::Kernel& kernel, SizedProgram& sizes)
      : k_(k), kernel_(kernel), sizes_(sizes) {
    for (ir::ExprId extent : kernel.grid) {
      grid_.push_back(std::max<int64_t>(1, sizes.value(extent).value_or(1)));
      known_ = known_ && sizes.value(extent).has_value();
    }
  }

  double part(const ir::Region& r) {
    if (!known_) return 0;
    double inside = 1;
    for (size_t d = 0; d < r.offsets.size(); ++d) inside *= 1 - part(r, d);
    return 1 - inside;
  }

 private:
  void at_first_block() {
    for (size_t v = 0; v < grid_.size(); ++v) sizes_.set(kernel_.block_vars[v], 0);
  }

  double part(const ir::Region& r, size_t d) {
    const auto size = sizes_.value(k_.p.buffer(r.buffer).shape[d]);
    at_first_block();
    const auto first = sizes_.value(r.offsets[d]);
    if (!size || !first) return 0;
    int follows = -1;  // the block index that the offset follows from
    for (size_t v = 0; v < grid_.size(); ++v) {
      sizes_.set(kernel_.block_vars[v], grid_[v] - 1);
      const auto last = sizes_.value(r.offsets[d]);
      sizes_.set(kernel_.block_vars[v], 0);
      if (!last) return 0;
      if (*last == *first) continue;
      if (follows >= 0) return 0;
      follows = static_cast<int>(v);
    }
    if (follows < 0) return beyond(*first, r.extents[d], *size);
    const auto v = static_cast<size_t>(follows);
    double sum = 0;
    for (int64_t i = std::max<int64_t>(0, grid_[v] - kLastTiles); i < grid_[v]; ++i) {
      sizes_.set(kernel_.block_vars[v], i);
      sum += beyond(sizes_.value(r.offsets[d]).value_or(0), r.extents[d], *size);
    }
    return sum / static_cast<double>(grid_[v]);
  }

  static double beyond(int64_t offset, int64_t extent, int64_t size) {  // of any sizes
    const double out = static_cast<double>(offset) + static_cast<double>(extent) - static_cast<double>(size);
    return std::clamp(out / static_cast<double>(std::max<int64_t>(1, extent)), 0.0, 1.0);
  }

  const PlannedKernel& k_;
  const ir::Kernel& kernel_;
  SizedProgram& sizes_;
  std::vector<int64_t> grid_;
  bool known_ = true;
};

}  // namespace

void count_filled(const PlannedKernel& k, const ir::Kernel& kernel, SizedProgram& sizes,
                  std::vector<OpWork>& works) {
  Outside outside(k, kernel, sizes);
  for (analysis::OpId i : k.ops.ops.ids()) {
    OpWork& w = works[i.index()];
    const auto* tile = k.p.as<ir::TileOp>(k.ops.ops[i].stmt);
    if (w.place != OpPlace::engine || !tile) continue;
    const double part = outside.part(tile->operands[0]);
    w.work.filled_bytes = part * w.work.read_bytes;
    w.work.read_bytes *= 1 - part;
    w.work.l2_bytes *= 1 - part;
  }
}

}  // namespace tilegen::cost
