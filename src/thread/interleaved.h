// Loops over rows whose elements stand side by side in a tile: what the rows of one group are stored as at
// once.
#pragma once

#include <optional>

#include "thread/thread_program.h"

namespace tilegen::thread {

// A store without a condition, not atomic, to a tile of values that read global memory or none.
bool only_copies_on_chip(const ThreadProgram& p, const Store& store);

struct InterleavedRows {
  ir::VarId row, lane;
  int64_t rows = 1, lanes = 1;
  const Store* store = nullptr;  // of the element row + rows * lane behind the first
};
// unrolled row { vectorized lane { store } } of 2 or 4 rows.
std::optional<InterleavedRows> interleaved_rows(const ThreadProgram& p, const Loop& loop);

// Lanes of which `unit`, a word of 32 bits, stay together, each word in a place of its own.
struct TransposedRows {
  ir::VarId row, lane;
  int64_t rows = 1, lanes = 1, unit = 1;
  // Of the element row * unit + lane % unit behind the first of the word lane / unit.
  const Store* store = nullptr;
};
// unrolled row { vectorized lane { store } } of 4, 8 or 16 rows; lanes are a multiple of rows * unit, and
// few enough to be held at once.
constexpr int64_t kMaxTransposedLanes = 64;
std::optional<TransposedRows> transposed_rows(const ThreadProgram& p, const Loop& loop);

// index = words * (lane / unit) + units * (lane % unit) + what does not mention the lane.
struct LaneDigits {
  int64_t words = 0, units = 0;
};
std::optional<LaneDigits> lane_digits(const ThreadProgram& p, ir::VarId lane, int64_t unit, ir::ExprId index);

}  // namespace tilegen::thread
