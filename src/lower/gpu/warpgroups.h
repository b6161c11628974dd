// Statements that warpgroups do apart from each other, and barriers of some of the block's threads.
#pragma once

#include <functional>

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// Run by the first thread, or the first `threads`, of each warpgroup.
thread::StmtId only_first_of_warpgroup(LoweringContext& k, thread::Block body, const std::string& origin,
                                       ExprId also = ExprId(), int64_t threads = 1);
// What a warpgroup of its own does, told apart by constant barrier numbers.
void for_each_warpgroup(LoweringContext& k, const std::function<thread::Block(int64_t)>& own,
                        thread::Block& out, const std::string& origin);
void warpgroup_barrier(LoweringContext& k, thread::Block& out, const std::string& origin);
// For which a warpgroup waits until another has arrived; counts both.
thread::Barrier order_barrier(LoweringContext& k, int64_t warpgroup, bool arrive_only);
// Of the computing threads. Named, also where no other role is: planting barriers leaves it where it stands.
void role_barrier(LoweringContext& k, thread::Block& out, const std::string& origin);

}  // namespace tilegen::lower
