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

}  // namespace tilegen::thread
