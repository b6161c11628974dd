// Atomic operations on memory: an instruction where LLVM has one for the type on every target, else a loop
// around compare-and-swap.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <vector>

#include "codegen/llvm/operators.h"
#include "ir/program.h"

namespace tilegen::codegen {

// What an atomic operation takes and gives beside the value.
struct AtomicParts {
  llvm::Value* condition = nullptr;  // if given, it is done where this holds
  llvm::Value* expected = nullptr;   // held, of compare_exchange
  llvm::Value* old_to = nullptr;     // if given, memory for the old value
  ir::AtomicOrder order = ir::AtomicOrder::relaxed;
  bool sums_narrow = false;  // the machine adds to floats of the type's 16 bits by an instruction
};

// memory at `pointer`, of the type as it is stored, = kind(memory, held). An order is fences around a relaxed
// operation, which orders as much on every target: of the block where the memory is shared.
void emit_atomic(llvm::IRBuilder<>& b, Operators& ops, const MachineFeatures& f, ir::AtomicKind kind,
                 ir::DType type, llvm::Value* pointer, llvm::Value* held, const AtomicParts& parts);

// Neighbours of such memory, aligned together, are added to by one instruction of global memory
// (target/atomic_sums.h): each is an operation of its own. `words`: they as they are stored.
void emit_wide_add(llvm::IRBuilder<>& b, const MachineFeatures& f, const char* form, llvm::Value* pointer,
                   const std::vector<llvm::Value*>& words, const AtomicParts& parts);

// The record of ir/print.h: the next one of the buffer at `base`, if one is left.
void emit_append(llvm::IRBuilder<>& b, const MachineFeatures& f, llvm::Value* base, llvm::Value* index,
                 llvm::Value* held, llvm::Value* condition);

}  // namespace tilegen::codegen
