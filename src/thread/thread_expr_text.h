// Text of one expression of a thread program, for its printer and its verifier.
#pragma once

#include <string>

#include "thread/thread_program.h"

namespace tilegen::thread {

// A variable's name, with its number when another variable has the same name.
std::string var_text(const ThreadProgram& p, ir::VarId id);
std::string memory_text(const ThreadProgram& p, MemoryId id);

// Infix with as few parentheses as the precedence of the .tl form needs; a predicated load is `m[i if p]`.
// Expressions are graphs, whose text can be exponentially long: past a bound the rest is "...". Ids out of
// range print as "?".
std::string expr_text(const ThreadProgram& p, ir::ExprId id);

}  // namespace tilegen::thread
