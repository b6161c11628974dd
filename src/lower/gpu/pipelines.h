// Pipelines between roles and the barriers that hand their slots over.
#pragma once

#include "analysis/kernel_ops.h"
#include "lower/lowering_parts.h"

namespace tilegen::lower {

// requires: values are declared.
void declare_pipelines(LoweringContext& k);
// The slot that the `count`th use of a pipeline has.
ExprId pipeline_slot(LoweringContext& k, const PipelineBarriers& line, ExprId count);
// A producer's copy, into the slot of the pipeline that it fills.
void issue_tensor_copy(LoweringContext& k, const analysis::KernelOp& op, int64_t part, thread::Block& out);

}  // namespace tilegen::lower
