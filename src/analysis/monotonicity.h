// How an expression changes with one variable.
#pragma once

#include "ir/program.h"

namespace tilegen::analysis {

enum class Monotonicity : uint8_t { constant, increasing, decreasing, unknown };  // neither one strictly

// Of indices: sums, differences, minima and maxima, products and quotients with numbers. Constant: the
// expression does not depend on the variable.
Monotonicity monotonicity(const ir::ExprPool& e, ir::ExprId id, ir::VarId var);

}  // namespace tilegen::analysis
