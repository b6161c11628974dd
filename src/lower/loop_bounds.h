// Bounds of loops, and scalars that are taken before what may change them.
#pragma once

#include "ir/program.h"
#include "lower/lowering_parts.h"

namespace tilegen::lower {

LoopBounds loop_bounds(LoweringContext& k, const ir::Loop& loop, thread::Block& out,
                       const std::string& origin);
bool reads_what_is_written(const LoweringContext& k, ExprId program_expr, const ir::Block& body);
// What the tile op fills with and where its regions begin, as it is before the op.
void take_scalars(LoweringContext& k, ir::StmtId op, thread::Block& out, const std::string& origin);

// Iterations of a loop that has run `count` times, which have taken their time.
ExprId repeated(LoweringContext& k, ExprId count, ExprId extent);
// 0 <= var < extent, but for what is known of the extent's value.
void bind_counter(LoweringContext& k, VarId var, ExprId extent);

}  // namespace tilegen::lower
