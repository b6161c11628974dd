// The names a program is printed with: the user's own wherever the text form can take them.
#pragma once

#include <string>
#include <vector>

#include "ir/program.h"

namespace tilegen::ir::text {

struct NameTable {
  std::string program;
  std::vector<std::string> vars, buffers, kernels, compile_params;  // by id
};

// Names that break the rules of text.h are changed, in program order, so that they read back to the same
// structure. A table of a program that follows the rules holds exactly the program's names.
NameTable printable_names(const Program& p);
// Of a function: none of another, or of the program's parameters.
std::vector<std::string> parameter_names(const Program& p, const NameTable& names,
                                         const std::vector<Var>& parameters);

}  // namespace tilegen::ir::text
