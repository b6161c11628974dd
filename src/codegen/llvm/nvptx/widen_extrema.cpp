#include "codegen/llvm/nvptx/widen_extrema.h"

#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

namespace tilegen::codegen {

namespace {

constexpr unsigned kWord = 32;

void widen(llvm::MinMaxIntrinsic* i) {
  llvm::IRBuilder<> b(i);
  llvm::Type* word = i->getType()->getWithNewBitWidth(kWord);
  const auto wide = [&](llvm::Value* v) {
    return i->isSigned() ? b.CreateSExt(v, word) : b.CreateZExt(v, word);
  };
  llvm::Value* result = b.CreateBinaryIntrinsic(i->getIntrinsicID(), wide(i->getLHS()), wide(i->getRHS()));
  i->replaceAllUsesWith(b.CreateTrunc(result, i->getType()));
  i->eraseFromParent();
}

}  // namespace

void widen_extrema(llvm::Module& module) {
  std::vector<llvm::MinMaxIntrinsic*> narrow;
  for (llvm::Function& f : module)
    for (llvm::Instruction& i : llvm::instructions(f))
      if (auto* extremum = llvm::dyn_cast<llvm::MinMaxIntrinsic>(&i);
          extremum && extremum->getType()->getScalarSizeInBits() < kWord)
        narrow.push_back(extremum);
  for (llvm::MinMaxIntrinsic* i : narrow) widen(i);
}

}  // namespace tilegen::codegen
