// The blocks inside a statement, changed one by one.
#pragma once

#include <utility>

#include "ir/program.h"

namespace tilegen::schedule {

// Calls change(block) for the body of a loop that is not parallel, and for both sides of a branch. It may add
// statements to the program: blocks are worked on outside of it.
template <class Change>
void change_inner_blocks(ir::Program& p, ir::StmtId s, Change&& change) {
  if (const auto* loop = p.as<ir::Loop>(s); loop && loop->kind != ir::LoopKind::parallel) {
    ir::Block body = loop->body;
    change(body);
    std::get<ir::Loop>(p.stmts[s.value].node).body = std::move(body);
  } else if (const auto* branch = p.as<ir::Branch>(s)) {
    ir::Block then_body = branch->then_body, else_body = branch->else_body;
    change(then_body);
    change(else_body);
    auto& made = std::get<ir::Branch>(p.stmts[s.value].node);
    made.then_body = std::move(then_body);
    made.else_body = std::move(else_body);
  }
}

}  // namespace tilegen::schedule
