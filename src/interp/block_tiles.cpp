#include "interp/block_tiles.h"

#include <algorithm>

namespace tilegen::interp {

BlockTiles::BlockTiles(const ir::Program& p, const expand::ScheduledKernel& k)
    : tiles_(k.ops->values.size()), handed_(tiles_.size(), false) {
  for (ValueId v : tiles_.ids()) {
    int64_t slots = std::max<int64_t>(1, k.schedule->values[v.index()].slots);
    for (const expand::Pipeline& line : k.pipelines) {
      if (!line.values.count(v)) continue;
      slots = std::max(slots, line.slots);
      handed_[v] = handed_[v] || line.transport == expand::Transport::tensor_copy;
    }
    const ir::BufferId b = k.ops->values[v].buffer;
    tiles_[v].resize(static_cast<size_t>(slots));
    for (Tile& t : tiles_[v]) t.storage = Storage::on_chip(p.buffer(b).type, p.tile_shape(b));
  }
  for (const expand::Pipeline& line : k.pipelines) slots_.emplace_back(static_cast<size_t>(line.slots));
}

void BlockTiles::begin_tile() {
  for (ValueId v : tiles_.ids()) {
    if (handed_[v]) continue;
    for (Tile& t : tiles_[v]) t.storage.forget(), t.use = {};
  }
}

}  // namespace tilegen::interp
