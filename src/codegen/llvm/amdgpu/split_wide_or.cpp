#include "codegen/llvm/amdgpu/split_wide_or.h"

#include <vector>

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Support/KnownBits.h>

namespace tilegen::codegen {

namespace {

// A half that is a known number is that number.
llvm::Value* half(llvm::IRBuilder<>& b, llvm::Value* v, unsigned first, const llvm::DataLayout& layout) {
  const llvm::KnownBits known = llvm::computeKnownBits(v, layout).extractBits(32, first);
  if (known.isConstant()) return b.getInt32(static_cast<uint32_t>(known.getConstant().getZExtValue()));
  return b.CreateTrunc(first == 0 ? v : b.CreateLShr(v, first), b.getInt32Ty());
}

}  // namespace

void split_wide_or(llvm::Module& module) {
  const llvm::DataLayout& layout = module.getDataLayout();
  std::vector<llvm::Instruction*> wide;
  for (llvm::Function& f : module)
    for (llvm::Instruction& i : llvm::instructions(f))
      if (i.getOpcode() == llvm::Instruction::Or && i.getType()->isIntegerTy(64)) wide.push_back(&i);
  for (llvm::Instruction* i : wide) {
    llvm::IRBuilder<> b(i);
    llvm::Value* pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getInt32Ty(), 2));
    for (unsigned h = 0; h < 2; ++h) {
      llvm::Value* either =
          b.CreateOr(half(b, i->getOperand(0), 32 * h, layout), half(b, i->getOperand(1), 32 * h, layout));
      pair = b.CreateInsertElement(pair, either, uint64_t{h});
    }
    i->replaceAllUsesWith(b.CreateBitCast(pair, i->getType()));
    i->eraseFromParent();
  }
}

}  // namespace tilegen::codegen
