// Results of a launch against those of the interpreter.
#pragma once

#include <optional>

#include "command_line.h"
#include "run_arguments.h"

namespace tool {

std::optional<double> tolerance_of(const CommandLine& line);  // --tolerance

// Prints how far `actual` is from `expected`; true when within the tolerance, or what the dtype allows.
bool report_difference(const Tensor& expected, const Tensor& actual, std::optional<double> tolerance);
// The same without a word.
bool agree(const Tensor& expected, const Tensor& actual, std::optional<double> tolerance);

}  // namespace tool
