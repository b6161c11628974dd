// Paths of the statements of one kernel, where those of the whole program (statement_paths) would be made
// once per kernel.
#pragma once

#include <string>
#include <vector>

#include "ir/program.h"

namespace tilegen::ir {

// As if no statement of the program, which is as written, had a label.
std::vector<std::string> paths_without_labels(const Program& p);

class KernelPaths {
 public:
  KernelPaths(const Program& p, int kernel);
  const std::string& operator[](size_t stmt) const { return paths_[stmt - first_]; }

 private:
  size_t first_ = 0;  // number of the kernel's first statement
  std::vector<std::string> paths_;
};

}  // namespace tilegen::ir
