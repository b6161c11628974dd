// PTX instructions as inline assembly.
#pragma once

#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/gpu/place.h"

namespace tilegen::codegen {

// All threads that come by together carry the call out together.
llvm::CallInst* convergent(llvm::CallInst* call);

// The two operands `[pointer+offset]` of an instruction are made of.
std::vector<llvm::Value*> address(llvm::IRBuilder<>& b, Place at);

class Assembly {
 public:
  explicit Assembly(llvm::IRBuilder<>& b) : b_(b) {}

  // An instruction that does nothing but make its result, from memory at most; or, without one, only writes.
  llvm::CallInst* instruction(llvm::Type* result, const llvm::Twine& text, const llvm::Twine& constraints,
                              llvm::ArrayRef<llvm::Value*> operands);
  // An instruction with effects beyond its results, of all threads that come by together.
  llvm::CallInst* effect(llvm::Type* result, const llvm::Twine& text, const llvm::Twine& constraints,
                         llvm::ArrayRef<llvm::Value*> operands);
  void effect(const llvm::Twine& text) { effect(b_.getVoidTy(), text, "~{memory}", {}); }

 private:
  llvm::IRBuilder<>& b_;
};

}  // namespace tilegen::codegen
