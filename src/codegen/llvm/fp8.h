// Conversions of the 8-bit floats, which are held in registers as the i8 that they are in memory.
#pragma once

#include <span>

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/llvm_setup.h"
#include "ir/dtype.h"

namespace tilegen::codegen {

// i8 codes of `t` -> the f32 values, exactly; scalar or vector. One instruction for two neighbours of a word
// where the machine has it, else integer arithmetic.
llvm::Value* fp8_to_float(llvm::IRBuilder<>& b, const MachineFeatures& f, ir::DType t, llvm::Value* codes);

// f32 values -> i8 codes of `t`: nearest even, saturating; a NaN becomes 0x7f, or 0x80 (FNUZ).
llvm::Value* float_to_fp8(llvm::IRBuilder<>& b, const MachineFeatures& f, ir::DType t, llvm::Value* values);

// Two i8 codes as one i16, `low` in its low byte: one instruction if both were converted from f32 on a
// machine that does that in pairs, else null.
llvm::Value* converted_pair(llvm::IRBuilder<>& b, llvm::Value* low, llvm::Value* high);

// Two or four i8 codes in the bytes of an i32, the first in the lowest, where AMD's instructions made all
// of them: one instruction for two. Else null.
llvm::Value* converted_word(llvm::IRBuilder<>& b, std::span<llvm::Value* const> codes);

}  // namespace tilegen::codegen
