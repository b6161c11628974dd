#include "codegen/llvm/nvptx/absolute_values.h"

#include <string>
#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

namespace tilegen::codegen {

namespace {

constexpr unsigned kWord = 32, kLong = 64;

// (x ^ s) - s, with s = x < 0 ? -1 : 0. As text: LLVM would make abs of it.
llvm::Value* written_out(llvm::IRBuilder<>& b, llvm::Value* x) {
  const unsigned bits = x->getType()->getScalarSizeInBits();
  const std::string n = std::to_string(bits), text = "{ .reg .b" + n + " s; shr.s" + n + " s, $1, " +
                                                     std::to_string(bits - 1) + "; xor.b" + n +
                                                     " $0, $1, s; sub.s" + n + " $0, $0, s; }";
  auto* type = llvm::FunctionType::get(x->getType(), {x->getType()}, false);
  auto* call = b.CreateCall(
      llvm::InlineAsm::get(type, text, bits == kLong ? "=&l,l" : "=&r,r", /*hasSideEffects=*/false), {x});
  call->setDoesNotAccessMemory();
  return call;
}

llvm::Value* absolute(llvm::IRBuilder<>& b, llvm::Value* x) {
  llvm::Type* type = x->getType();
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
    llvm::Value* all = llvm::PoisonValue::get(type);
    for (unsigned e = 0; e < vector->getNumElements(); ++e)
      all = b.CreateInsertElement(all, absolute(b, b.CreateExtractElement(x, e)), e);
    return all;
  }
  llvm::Type* word = type->getScalarSizeInBits() > kWord ? type : b.getInt32Ty();
  return b.CreateTrunc(written_out(b, b.CreateSExt(x, word)), type);
}

}  // namespace

void replace_absolute_values(llvm::Module& module) {
  std::vector<llvm::IntrinsicInst*> found;
  for (llvm::Function& f : module)
    for (llvm::Instruction& i : llvm::instructions(f))
      if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
          call && call->getIntrinsicID() == llvm::Intrinsic::abs)
        found.push_back(call);
  for (llvm::IntrinsicInst* i : found) {
    llvm::IRBuilder<> b(i);
    i->replaceAllUsesWith(absolute(b, i->getArgOperand(0)));
    i->eraseFromParent();
  }
}

}  // namespace tilegen::codegen
