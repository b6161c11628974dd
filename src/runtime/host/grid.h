// The grid of a kernel, from the values of its parameters.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "support/diagnostic.h"
#include "thread/thread_program.h"

namespace tilegen::runtime {

struct Grid {
  std::array<int64_t, 3> extents{};  // as many as ThreadProgram::grid, slowest first
  int64_t blocks = 0;                // their product; 0 when any is not positive
};

// Refuses (overflow) a grid whose block count does not fit 64 bits. `params` are the slots of kernel.params.
Expected<Grid> evaluate_grid(const thread::ThreadProgram& kernel, std::span<const uint64_t> params);

// An integer expression over parameters. Wraps like every executor.
int64_t evaluate_launch_value(const thread::ThreadProgram& kernel, std::span<const uint64_t> params,
                              ir::ExprId value);

}  // namespace tilegen::runtime
