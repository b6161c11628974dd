// What is one value as long as a block runs, and what facts of dims say of values.
#pragma once

#include <map>
#include <vector>

#include "ir/program.h"

namespace tilegen::check {

// A condition and its opposite: whether they hold where the first of them does.
using FixedCondition = std::map<ir::ExprId, bool>;

// Adds the parts of a condition that launch and block alone tell, which are one value wherever they stand.
void add_fixed_conditions(const ir::Program& p, ir::ExprId condition, std::vector<FixedCondition>& to);

// By the facts of dims; -1: it is not known, or below 0.
int64_t greatest_value(const ir::Program& p, ir::ExprId e);

}  // namespace tilegen::check
