// Expressions and addresses: program variables and element loads rewritten for the thread program.
// gpu/registers.h has the elements that threads hold in registers.
//
// requires: the values and names of the context are declared.
#pragma once

#include <span>

#include "lower/lowering_parts.h"

namespace tilegen::lower {

// Under the current meaning of the program's variables.
ExprId lower_expr(LoweringContext& k, ExprId program_expr);
// Conjunction; an invalid id is "true".
ExprId both(LoweringContext& k, ExprId a, ExprId b);

// Value the op being lowered means by an on-chip buffer; -1 and an error when that cannot be told.
analysis::ValueId value_of(LoweringContext& k, ir::BufferId buffer);
MemoryId memory_of(LoweringContext& k, ir::BufferId buffer);
// As the op being lowered sees the value.
const plan::ValuePlan& value_plan(LoweringContext& k, ir::BufferId buffer);

ExprId layout_index(LoweringContext& k, const layout::Layout& l, int output, std::span<const ExprId> indices);
// Where the layout's swizzle moves element `index`.
ExprId swizzled(LoweringContext& k, const layout::Layout& l, ExprId index);
// Element `index` of the slot that the statements being lowered mean.
ExprId in_slot(LoweringContext& k, analysis::ValueId value, ExprId index);
// Element `indices` of a buffer as an index into its memory.
ExprId memory_index(LoweringContext& k, ir::BufferId buffer, std::span<const ExprId> indices);

// That an optional tensor is there, unless a branch around has asked; invalid for others.
ExprId presence_predicate(LoweringContext& k, ir::BufferId buffer);
// Presence, and bounds that are not proven. `given` holds wherever the predicate counts: what it tells is not
// asked again.
ExprId bounds_predicate(LoweringContext& k, ir::BufferId buffer, std::span<const ExprId> indices,
                        ExprId given = ExprId());
// `inside`: the element is known to be in bounds wherever `predicate` holds.
ExprId load_element(LoweringContext& k, ir::BufferId buffer, std::span<const ExprId> indices, bool inside,
                    ExprId predicate = ExprId());
ExprId store_predicate(LoweringContext& k, ir::BufferId buffer, std::span<const ExprId> indices,
                       ExprId predicate, bool inside);
// A planned streaming store pays when the tensor is larger than the target's caches: a condition on its size;
// invalid for tensors known to be small and for tiles, which are never streamed.
ExprId streaming_condition(LoweringContext& k, const plan::OpPlan& plan, ir::BufferId buffer);

}  // namespace tilegen::lower
