#include "codegen/llvm/nvptx/assembly.h"

#include <vector>

#include <llvm/IR/InlineAsm.h>

namespace tilegen::codegen {

using llvm::Value;

llvm::CallInst* convergent(llvm::CallInst* call) {
  call->setConvergent();
  return call;
}

std::vector<Value*> address(llvm::IRBuilder<>& b, Place at) {
  constexpr int64_t kLimit = 1 << 30;  // instructions have 32 bits for the offset
  if (at.offset <= -kLimit || at.offset >= kLimit) at = {pointer(b, at), 0};
  return {at.pointer, b.getInt32(static_cast<uint32_t>(at.offset))};
}

llvm::CallInst* Assembly::instruction(llvm::Type* result, const llvm::Twine& text,
                                      const llvm::Twine& constraints, llvm::ArrayRef<Value*> operands) {
  std::vector<llvm::Type*> types;
  for (Value* v : operands) types.push_back(v->getType());
  auto* type = llvm::FunctionType::get(result, types, false);
  bool reads_only = !result->isVoidTy();
  auto* code = llvm::InlineAsm::get(type, text.str(), constraints.str(), /*hasSideEffects=*/!reads_only);
  llvm::CallInst* call = b_.CreateCall(type, code, operands);
  call->addFnAttr(llvm::Attribute::NoUnwind);
  if (reads_only) {
    call->addFnAttr(llvm::Attribute::WillReturn);
    call->setOnlyReadsMemory();
  }
  return call;
}

llvm::CallInst* Assembly::effect(llvm::Type* result, const llvm::Twine& text, const llvm::Twine& constraints,
                                 llvm::ArrayRef<Value*> operands) {
  std::vector<llvm::Type*> types;
  for (Value* v : operands) types.push_back(v->getType());
  auto* type = llvm::FunctionType::get(result, types, false);
  auto* code = llvm::InlineAsm::get(type, text.str(), constraints.str(), /*hasSideEffects=*/true);
  llvm::CallInst* call = b_.CreateCall(type, code, operands);
  call->addFnAttr(llvm::Attribute::NoUnwind);
  return convergent(call);
}

}  // namespace tilegen::codegen
