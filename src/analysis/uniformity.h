// Which expressions are the same for all that ask.
#pragma once

#include <functional>

#include "ir/program.h"

namespace tilegen::analysis {

// All threads and roles of a block compute the same, whenever they do: the expression reads nothing but
// variables, constants and tensors that the program may not write. requires: its variables are those of the
// grid and of loops that all of them run.
bool is_uniform(const ir::Program& p, ir::ExprId e);

// A constant wherever `known` variables are: the expression reads nothing but them and constants.
bool is_constant_with(const ir::ExprPool& e, ir::ExprId root, const std::function<bool(ir::VarId)>& known);

}  // namespace tilegen::analysis
