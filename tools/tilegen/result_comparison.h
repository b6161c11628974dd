// Results of a launch against those of the interpreter.
#pragma once

#include "command_line.h"
#include "run_arguments.h"

namespace tool {

// Prints how far `actual` is from `expected`; true when within --tolerance, or what the dtype allows.
bool report_difference(const Tensor& expected, const Tensor& actual, const CommandLine& line);
// The same without a word.
bool agree(const Tensor& expected, const Tensor& actual, const CommandLine& line);

}  // namespace tool
