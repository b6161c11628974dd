// How an expression moves with a variable.
#pragma once

#include "ir/program.h"

namespace tilegen::schedule {

enum class Trend : uint8_t { level, rising, falling, unknown };

// Of indices: sums, differences, minima and maxima, products and quotients with numbers. Level: it does not
//   depend on it.
Trend trend(const ir::ExprPool& e, ir::ExprId id, ir::VarId var);

}  // namespace tilegen::schedule
