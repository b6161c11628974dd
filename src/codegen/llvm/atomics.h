// Atomic operations on memory: an instruction where LLVM has one for the type on every target, else a loop
// around compare-and-swap.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/operators.h"
#include "ir/program.h"

namespace tilegen::codegen {

// What an atomic operation takes and gives beside the value.
struct AtomicParts {
  llvm::Value* condition = nullptr;  // if given, it is done where this holds
  llvm::Value* expected = nullptr;   // held, of compare_exchange
  llvm::Value* old_to = nullptr;     // if given, memory for the old value
  ir::AtomicOrder order = ir::AtomicOrder::relaxed;
};

// memory at `pointer`, of the type as it is stored, = kind(memory, held). An order is fences around a relaxed
// operation, which orders as much on every target: of the block where the memory is shared.
void emit_atomic(llvm::IRBuilder<>& b, Operators& ops, const MachineFeatures& f, ir::AtomicKind kind,
                 ir::DType type, llvm::Value* pointer, llvm::Value* held, const AtomicParts& parts);

// Two neighbours of such memory, aligned as a pair, are added to by one instruction: each is an operation of
// its own. `pair`: the two as they are stored, in a word.
bool adds_pairs(const MachineFeatures& f, ir::AtomicKind kind, ir::DType type, llvm::Value* pointer);
void emit_pair_add(llvm::IRBuilder<>& b, const MachineFeatures& f, llvm::Value* pointer, llvm::Value* pair,
                   const AtomicParts& parts);

// The record of ir/print.h: the next one of the buffer at `base`, if one is left.
void emit_append(llvm::IRBuilder<>& b, const MachineFeatures& f, llvm::Value* base, llvm::Value* index,
                 llvm::Value* held, llvm::Value* condition);

}  // namespace tilegen::codegen
