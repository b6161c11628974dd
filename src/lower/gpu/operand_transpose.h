// Copies of products' operands for instructions that read rows along k only.
#pragma once

#include "analysis/kernel_ops.h"
#include "lower/lowering_parts.h"

namespace tilegen::lower {

// None where the instructions read the operand as it lies. `part`: rows of one instruction.
TransposedOperand transpose_operand(LoweringContext& k, const analysis::KernelOp& op,
                                    const ir::TileOp& tile_op, int index, const target::WarpgroupAtom& atom,
                                    int64_t part, thread::Block& out);

}  // namespace tilegen::lower
