// Boxes of tensors moved by the copy engine: the maps it needs and the copies that fill or store a tile.
#pragma once

#include "analysis/kernel_ops.h"
#include "analysis/tensor_copy.h"
#include "arith/context.h"
#include "lower/lowering_parts.h"

namespace tilegen::lower {

// A coordinate for the copy engine, which takes 32 bits of it: `at`, or where that may not fit, a number
// outside of the tensor wherever `at` is. The launch has found the extent to be at most
// thread::kMaxTensorExtent.
ExprId tensor_coordinate(arith::Context& ctx, ExprId at, ExprId extent);
// Coordinates of the box that begins `row` rows and `column` elements after the region's begin, innermost
// first.
std::vector<ExprId> box_coordinates(LoweringContext& k, const std::vector<ExprId>& origin,
                                    const analysis::TensorCopyDims& dims, ExprId row, ExprId column);
std::vector<int64_t> box_of(const ir::Region& r, const analysis::TensorCopyDims& dims, int64_t rows,
                            int64_t columns);
// A map of the tensor, none of the program's yet.
thread::TensorMap box_map(LoweringContext& k, ir::BufferId tensor, const std::vector<int64_t>& box);
// Index of the map with this box, added where there is none.
int tensor_map(LoweringContext& k, ir::BufferId tensor, const std::vector<int64_t>& box, int swizzle);

int64_t tensor_load_bytes(const LoweringContext& k, const analysis::KernelOp& op);
// analysis::shared_rows of what the copy fills; 0: the blocks of a cluster share nothing.
int64_t shared_rows_of(const LoweringContext& k, const analysis::KernelOp& op);
// Copies of a producer into a slot of the pipeline.
void tensor_loads(LoweringContext& k, const analysis::KernelOp& op, const PipelineBarriers& line, ExprId slot,
                  thread::Block& out);
void store_tile(LoweringContext& k, const analysis::KernelOp& op, thread::Block& out);

}  // namespace tilegen::lower
