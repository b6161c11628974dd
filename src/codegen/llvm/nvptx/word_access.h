// Accesses of at most 16 bytes to global and shared memory, as words or one smaller register.
//
// A predicated access is one inline instruction under a predicate register: what it does not reach is not
// touched, and the code stays in one block. Others are LLVM's, which may share and hoist them.
#pragma once

#include "codegen/llvm/gpu/place.h"
#include "thread/thread_program.h"

namespace tilegen::codegen {

// `condition`: where the access happens; null: always.
std::vector<llvm::Value*> ptx_load_words(llvm::IRBuilder<>& b, const Place& at, const thread::Memory& m,
                                         int64_t bytes, llvm::Value* condition, LoadKind kind);
void ptx_store_words(llvm::IRBuilder<>& b, const Place& at, const thread::Memory& m, int64_t bytes,
                     std::vector<llvm::Value*> words, llvm::Value* condition, bool streaming);

}  // namespace tilegen::codegen
