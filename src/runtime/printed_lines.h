// The lines that a launch prints, of the records that its kernels left (ir/print.h).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ir/report_place.h"
#include "runtime/dim_solver.h"

namespace tilegen::runtime {

// The digits of a place; empty where the place is beyond what its number can tell.
std::vector<int64_t> digits_of(std::span<const ir::PlaceDigit> digits, const DimSolver& dims, int64_t limit,
                               int64_t place);
// "by = 1, iteration 3 of ko, i = 4"
std::string place_text(const ir::Program& p, std::span<const ir::PlaceDigit> digits,
                       std::span<const int64_t> values);

// `buffers`: of Report::prints, floats or integers as the program's buffers are.
struct PrintBuffer {
  const std::byte* memory = nullptr;
};
std::vector<std::string> printed_lines(const ir::Program& p, const DimSolver& dims,
                                       std::span<const PrintBuffer> buffers);

}  // namespace tilegen::runtime
