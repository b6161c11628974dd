#include "codegen/llvm/nvptx/differences.h"

#include <vector>

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>

namespace tilegen::codegen {

namespace {

// As text: LLVM would make the difference of it.
llvm::Value* text(llvm::IRBuilder<>& b, const char* lines, const char* constraints,
                  llvm::ArrayRef<llvm::Value*> operands) {
  const std::vector<llvm::Type*> types(operands.size(), operands[0]->getType());
  auto* call = b.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(types[0], types, false), lines,
                                                 constraints, /*hasSideEffects=*/false),
                            operands);
  call->setDoesNotAccessMemory();
  return call;
}

// Of a scalar; null: it stays.
llvm::Value* rewritten(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y) {
  using llvm::PatternMatch::m_ZeroInt;
  if (x->getType()->isIntegerTy(16) && llvm::PatternMatch::match(x, m_ZeroInt()))
    return text(b, "{ .reg .b32 t; cvt.u32.u16 t, $1; neg.s32 t, t; cvt.u16.u32 $0, t; }", "=h,h", {y});
  constexpr unsigned kUpper = 32;
  const auto& layout = b.GetInsertBlock()->getModule()->getDataLayout();
  if (x->getType()->isIntegerTy(64) && !llvm::isa<llvm::Constant>(x) &&
      llvm::computeKnownBits(x, layout).countMinLeadingZeros() >= kUpper)
    return text(b, "{ .reg .b64 t; not.b64 t, $2; add.s64 t, $1, t; add.s64 $0, t, 1; }", "=l,l,l", {x, y});
  return nullptr;
}

// Each element of a vector of 16-bit integers.
llvm::Value* rewritten_elements(llvm::IRBuilder<>& b, llvm::Instruction& i) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(i.getType());
  if (!vector) return rewritten(b, i.getOperand(0), i.getOperand(1));
  if (!vector->getElementType()->isIntegerTy(16) ||
      !llvm::PatternMatch::match(i.getOperand(0), llvm::PatternMatch::m_ZeroInt()))
    return nullptr;
  llvm::Value* all = llvm::PoisonValue::get(i.getType());
  for (unsigned e = 0; e < vector->getNumElements(); ++e)
    all = b.CreateInsertElement(all, rewritten(b, b.getInt16(0), b.CreateExtractElement(i.getOperand(1), e)),
                                e);
  return all;
}

}  // namespace

void rewrite_differences(llvm::Module& module) {
  std::vector<llvm::Instruction*> found;
  for (llvm::Function& f : module)
    for (llvm::Instruction& i : llvm::instructions(f))
      if (i.getOpcode() == llvm::Instruction::Sub) found.push_back(&i);
  for (llvm::Instruction* i : found) {
    llvm::IRBuilder<> b(i);
    if (llvm::Value* other = rewritten_elements(b, *i)) {
      i->replaceAllUsesWith(other);
      i->eraseFromParent();
    }
  }
}

}  // namespace tilegen::codegen
