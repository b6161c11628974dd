// Atomic operations on memory: an instruction where LLVM has one for the type on every target, else a loop
// around compare-and-swap.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/operators.h"
#include "ir/program.h"

namespace tilegen::codegen {

// memory at `pointer`, of the type as it is stored, = kind(memory, held), in relaxed order. Where `condition`
// is given, if it holds.
void emit_atomic(llvm::IRBuilder<>& b, Operators& ops, const MachineFeatures& f, ir::AtomicKind kind,
                 ir::DType type, llvm::Value* pointer, llvm::Value* held, llvm::Value* condition);

// The record of ir/print.h: the next one of the buffer at `base`, if one is left.
void emit_append(llvm::IRBuilder<>& b, const MachineFeatures& f, llvm::Value* base, llvm::Value* index,
                 llvm::Value* held, llvm::Value* condition);

}  // namespace tilegen::codegen
