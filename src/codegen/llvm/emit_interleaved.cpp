// Rows whose elements stand side by side in a tile (thread/interleaved.h): the rows' vectors are joined in
// registers and stored as one run, where each by itself would be stored element by element.
#include "codegen/llvm/host_emitter.h"
#include "codegen/llvm/types.h"
#include "thread/interleaved.h"

namespace tilegen::codegen {

using llvm::Value;

namespace {

// x0 y0 x1 y1 ...
Value* alternate(Builder& b, Value* x, Value* y) {
  const auto lanes = static_cast<int>(lane_count(x));
  std::vector<int> order;
  for (int i = 0; i < lanes; ++i) order.insert(order.end(), {i, lanes + i});
  return b.CreateShuffleVector(x, y, order);
}

}  // namespace

void HostEmitter::emit_unrolled_loop(const thread::Loop& loop) {
  const auto rows = lane_var_.valid() ? std::nullopt : thread::interleaved_rows(program_, loop);
  if (!rows || rows->lanes < 2 || rows->lanes > kMaxLanes) return ProgramEmitter::emit_unrolled_loop(loop);
  const thread::MemoryId memory = rows->store->memory;
  lane_var_ = rows->lane;
  width_ = rows->lanes;
  lanes_.enter(rows->lane, width_, 0);
  open_scope(false);
  bind(rows->lane, b_.getInt64(0));
  std::vector<Value*> loaded;
  Place at;
  for (int64_t row = 0; row < rows->rows; ++row) {
    open_scope(false);
    bind(rows->row, b_.getInt64(row));
    in_statement([&] {
      if (row == 0) at = place(memory, rows->store->index);
      loaded.push_back(
          splat(to_storage(b_, program_.memory(memory).type, value(rows->store->value)), width_));
    });
    close_scope();
  }
  // Halves first: rows 0 2 and 1 3 alternate, then these.
  while (loaded.size() > 1) {
    const size_t half = loaded.size() / 2;
    for (size_t i = 0; i < half; ++i) loaded[i] = alternate(b_, loaded[i], loaded[half + i]);
    loaded.resize(half);
  }
  store_contiguous(at, memory, loaded[0], nullptr, false);
  close_scope();
  lanes_.leave();
  lane_var_ = ir::VarId();
  width_ = 1;
}

}  // namespace tilegen::codegen
