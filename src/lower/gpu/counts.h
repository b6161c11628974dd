// How often pipelines have been filled and used before: told by the points of the grid and the iterations
// around where trip counts say it, else counted after each run (analysis::runs_irregularly).
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// How often iterations of the loop have filled its pipelines before it begins.
ExprId fillings_before(LoweringContext& k, ir::StmtId loop, ExprId extent);
void count_fillings(LoweringContext& k, ir::StmtId loop, ExprId extent, thread::Block& out);
// The same for a pipeline that is filled once for a point of the grid, if at all.
ExprId uses_before(LoweringContext& k, const PipelineBarriers& line);
void count_use(LoweringContext& k, const PipelineBarriers& line, thread::Block& out);

// A number of 32 bits in a register.
ExprId held_number(LoweringContext& k, MemoryId number);

}  // namespace tilegen::lower
