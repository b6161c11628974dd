// Integers of few bits as 16-bit floats, two at a time: the bits are put below a power of two whose last
// digit counts ones, and one multiply-add takes the power off again. A conversion makes one at a time.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "ir/dtype.h"

namespace tilegen::codegen {

// `low` and `high` are floats that integers of known few bits were converted to: both as <2 x half> or
// <2 x bfloat>, exactly. Null: they are not, or have too many bits. Code of NVPTX.
llvm::Value* converted_fields(llvm::IRBuilder<>& b, ir::DType t, llvm::Value* low, llvm::Value* high);

}  // namespace tilegen::codegen
