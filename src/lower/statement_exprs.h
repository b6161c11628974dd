// The expressions that a statement of a thread program holds, uniformly.
#pragma once

#include <functional>

#include "thread/thread_program.h"

namespace tilegen::lower {

// Every expression field of the statement itself, invalid ones included; bodies are not entered.
void for_each_expr(thread::StmtNode& node, const std::function<void(ir::ExprId&)>& visit);

// ... and of all statements below the block.
void for_each_expr_below(thread::ThreadProgram& p, const thread::Block& block,
                         const std::function<void(ir::ExprId&)>& visit);

}  // namespace tilegen::lower
