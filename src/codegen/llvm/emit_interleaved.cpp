// Rows whose elements stand side by side in a tile, and rows that are its columns (thread/interleaved.h):
// the rows' vectors are joined or transposed in registers and stored as runs, where each by itself would be
// stored element by element.
#include <array>

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

using Values = std::vector<Value*>;

// Lanes of two vectors, `picked` four at a time: numbers of lanes in each four of the first and, from 4 on,
// of the second.
Value* in_fours(Builder& b, Value* x, Value* y, std::array<int, 4> picked) {
  const auto lanes = static_cast<int>(lane_count(x));
  std::vector<int> order;
  for (int four = 0; four < lanes; four += 4)
    for (int lane : picked) order.push_back(four + lane % 4 + (lane < 4 ? 0 : lanes));
  return b.CreateShuffleVector(x, y, order);
}

// Every second four of two vectors, from `first` on.
Value* fours_of(Builder& b, Value* x, Value* y, int first) {
  const auto fours = static_cast<int>(lane_count(x)) / 4;
  std::vector<int> order;
  for (int side = 0; side < 2; ++side)
    for (int four = first; four < fours; four += 2)
      for (int lane = 0; lane < 4; ++lane) order.push_back((side * fours + four) * 4 + lane);
  return b.CreateShuffleVector(x, y, order);
}

// Columns of as many rows of words as they have, 4, 8 or 16: the shuffles are those of the machine, within
// 128 bits and of 128 bits.
Values transposed(Builder& b, const Values& rows) {
  const size_t n = rows.size();
  Values fours(n);  // at g * 4 + c: column 4 * l + c of rows 4 * g.. in four l
  for (size_t g = 0; g < n; g += 4) {
    Value* low[2];
    Value* high[2];
    for (size_t h = 0; h < 2; ++h) {
      low[h] = in_fours(b, rows[g + 2 * h], rows[g + 2 * h + 1], {0, 4, 1, 5});
      high[h] = in_fours(b, rows[g + 2 * h], rows[g + 2 * h + 1], {2, 6, 3, 7});
    }
    fours[g] = in_fours(b, low[0], low[1], {0, 1, 4, 5});
    fours[g + 1] = in_fours(b, low[0], low[1], {2, 3, 6, 7});
    fours[g + 2] = in_fours(b, high[0], high[1], {0, 1, 4, 5});
    fours[g + 3] = in_fours(b, high[0], high[1], {2, 3, 6, 7});
  }
  if (n == 4) return fours;
  Values columns(n);
  for (size_t c = 0; c < 4; ++c)
    for (int odd = 0; odd < 2; ++odd) {
      Value* first = fours_of(b, fours[c], fours[4 + c], odd);
      const size_t l = static_cast<size_t>(odd);
      if (n == 8) {
        columns[4 * l + c] = first;
        continue;
      }
      Value* second = fours_of(b, fours[8 + c], fours[12 + c], odd);
      columns[4 * l + c] = fours_of(b, first, second, 0);
      columns[4 * (l + 2) + c] = fours_of(b, first, second, 1);
    }
  return columns;
}

}  // namespace

void HostEmitter::emit_unrolled_loop(const thread::Loop& loop) {
  if (!lane_var_.valid()) {
    if (const auto rows = thread::transposed_rows(program_, loop)) return emit_transposed(*rows);
    const auto rows = thread::interleaved_rows(program_, loop);
    if (rows && rows->lanes >= 2 && rows->lanes <= kMaxLanes) return emit_interleaved(*rows);
  }
  ProgramEmitter::emit_unrolled_loop(loop);
}

std::vector<Value*> HostEmitter::load_rows(const thread::Store& store, ir::VarId row, int64_t rows,
                                           ir::VarId lane, int64_t lanes, Place* first) {
  Values loaded;
  lane_var_ = lane;
  width_ = lanes;
  lanes_.enter(lane, width_, 0);
  open_scope(false);
  bind(lane, b_.getInt64(0));
  for (int64_t r = 0; r < rows; ++r) {
    open_scope(false);
    bind(row, b_.getInt64(r));
    in_statement([&] {
      if (r == 0 && first) *first = place(store.memory, store.index);
      loaded.push_back(splat(to_storage(b_, program_.memory(store.memory).type, value(store.value)), width_));
    });
    close_scope();
  }
  close_scope();
  lanes_.leave();
  lane_var_ = ir::VarId();
  width_ = 1;
  return loaded;
}

void HostEmitter::emit_transposed(const thread::TransposedRows& t) {
  Values rows = load_rows(*t.store, t.row, t.rows, t.lane, t.lanes, nullptr);
  const int64_t words = t.lanes / t.unit;
  llvm::Type* row_type = llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(words));
  for (Value*& row : rows) row = b_.CreateBitCast(row, row_type);
  llvm::Type* column_type = llvm::FixedVectorType::get(
      storage_type(context_, program_.memory(t.store->memory).type), static_cast<unsigned>(t.rows * t.unit));
  for (int64_t from = 0; from < words; from += t.rows) {
    std::vector<int> piece;
    for (int64_t w = 0; w < t.rows; ++w) piece.push_back(static_cast<int>(from + w));
    Values square;
    for (Value* row : rows) square.push_back(words == t.rows ? row : b_.CreateShuffleVector(row, piece));
    const Values columns = transposed(b_, square);
    for (int64_t w = 0; w < t.rows; ++w) {
      open_scope(false);
      bind(t.row, b_.getInt64(0));
      bind(t.lane, b_.getInt64(static_cast<uint64_t>((from + w) * t.unit)));
      in_statement([&] {
        store_contiguous(place(t.store->memory, t.store->index), t.store->memory,
                         b_.CreateBitCast(columns[static_cast<size_t>(w)], column_type), nullptr, false);
      });
      close_scope();
    }
  }
}

void HostEmitter::emit_interleaved(const thread::InterleavedRows& rows) {
  Place at;
  Values loaded = load_rows(*rows.store, rows.row, rows.rows, rows.lane, rows.lanes, &at);
  // Halves first: rows 0 2 and 1 3 alternate, then these.
  while (loaded.size() > 1) {
    const size_t half = loaded.size() / 2;
    for (size_t i = 0; i < half; ++i) loaded[i] = alternate(b_, loaded[i], loaded[half + i]);
    loaded.resize(half);
  }
  store_contiguous(at, rows.store->memory, loaded[0], nullptr, false);
}

}  // namespace tilegen::codegen
