// Accesses of at most 16 bytes to global and shared memory, as words or one smaller register.
//
// A predicated access is one inline instruction under a predicate register: what it does not reach is not
// touched, and the code stays in one block. Others are LLVM's, which may share and hoist them.
#pragma once

#include "codegen/llvm/gpu/place.h"
#include "thread/thread_program.h"

namespace tilegen::codegen {

// A policy for lines of the second cache (createpolicy), as an operand of the instructions that take one;
// null where none is asked for.
llvm::Value* cache_policy(llvm::IRBuilder<>& b, thread::Caching caching);

// `condition`: where the access happens; null: always.
std::vector<llvm::Value*> ptx_load_words(llvm::IRBuilder<>& b, const Place& at, const thread::Memory& m,
                                         int64_t bytes, llvm::Value* condition, LoadKind kind);
void ptx_store_words(llvm::IRBuilder<>& b, const Place& at, const thread::Memory& m, int64_t bytes,
                     std::vector<llvm::Value*> words, llvm::Value* condition, bool streaming);

}  // namespace tilegen::codegen
