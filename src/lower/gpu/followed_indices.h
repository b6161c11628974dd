// Elements of fragments at computed places, as digits of the point that reads or writes them: which register
// holds the element is then told once loops are unrolled, however the index is written.
#pragma once

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// Of the op's accesses at the walk's point.
// requires: the program's loop variables are the point's.
void follow_indices(LoweringContext& k, const analysis::KernelOp& op);

// The element of `indices`, as they were lowered, of a value in registers.
ExprId load_followed(LoweringContext& k, ir::BufferId buffer, std::span<const ExprId> indices);
std::vector<ExprId> followed_indices(LoweringContext& k, ir::BufferId buffer,
                                     std::span<const ExprId> indices);

}  // namespace tilegen::lower
