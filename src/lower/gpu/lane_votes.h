// Expressions that ask all lanes of a group become votes of the machine.
#pragma once

#include <utility>
#include <vector>

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// The parts of a program's expression that the walk's thread has by a vote, with what stands for them: a
// register, which a vote among the walk's statements fills.
// requires: a walk of which lanes give each other elements.
std::vector<std::pair<ExprId, ExprId>> lower_votes(LoweringContext& k, ExprId program_expr);

}  // namespace tilegen::lower
