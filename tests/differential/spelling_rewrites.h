// The same program in other words: statements and expressions are written otherwise, what they compute stays
// the same bits.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "ir/program.h"

namespace tilegen::differential {

// Writes a program otherwise; false: nothing in it can be. Statements that stay keep their ids.
struct Rewrite {
  std::string_view name;
  std::function<bool(ir::Program&)> apply;
};
std::span<const Rewrite> spelling_rewrites();

// Those of expressions alone, and what both kinds are made with.
bool commute(ir::Program& p);
bool choose_extremes(ir::Program& p);
const ir::Loop* parallel_loop(const ir::Program& p, ir::StmtId s);  // null for others
// Every expression of a block's stores and branches as made(e).
void replace_inside(ir::Program& p, const ir::Block& block,
                    const std::function<ir::ExprId(ir::ExprId)>& made);

}  // namespace tilegen::differential
