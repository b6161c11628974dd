// The forms in which an op takes its operands: fragments in other layouts, values in memory.
#pragma once

#include "analysis/kernel_ops.h"
#include "lower/lowering_parts.h"

namespace tilegen::lower {

// The planned conversions before an op and after it; between the two fragment_view() gives the op's forms.
void begin_conversions(LoweringContext& k, const analysis::KernelOp& op, thread::Block& out);
void end_conversions(LoweringContext& k, const analysis::KernelOp& op, thread::Block& out);
// The same for what the op works on in memory.
void begin_copies(LoweringContext& k, const analysis::KernelOp& op, const plan::OpPlan& plan,
                  thread::Block& out);
void end_copies(LoweringContext& k, const analysis::KernelOp& op, thread::Block& out);

}  // namespace tilegen::lower
