#include "codegen/llvm/nvptx/expand_division.h"

#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "codegen/llvm/unsigned_division.h"

namespace tilegen::codegen {

using llvm::BinaryOperator;
using llvm::Instruction;
using llvm::Value;

namespace {

constexpr unsigned kWord = 32;

bool is_signed(const BinaryOperator& i) {
  return i.getOpcode() == Instruction::SDiv || i.getOpcode() == Instruction::SRem;
}

bool is_quotient(const BinaryOperator& i) {
  return i.getOpcode() == Instruction::SDiv || i.getOpcode() == Instruction::UDiv;
}

void replace(BinaryOperator* i, Value* with) {
  i->replaceAllUsesWith(with);
  i->eraseFromParent();
}

// Element by element.
std::vector<BinaryOperator*> scalars_of(BinaryOperator* i) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(i->getType());
  if (!type) return {i};
  llvm::IRBuilder<> b(i);
  std::vector<BinaryOperator*> parts;
  Value* whole = llvm::PoisonValue::get(type);
  for (uint64_t e = 0; e < type->getNumElements(); ++e) {
    Value* part = b.CreateBinOp(i->getOpcode(), b.CreateExtractElement(i->getOperand(0), e),
                                b.CreateExtractElement(i->getOperand(1), e));
    if (auto* division = llvm::dyn_cast<BinaryOperator>(part)) parts.push_back(division);
    whole = b.CreateInsertElement(whole, part, e);
  }
  replace(i, whole);
  return parts;
}

void widen(BinaryOperator* i) {
  llvm::IRBuilder<> b(i);
  const auto wide = [&](Value* v) {
    return is_signed(*i) ? b.CreateSExt(v, b.getInt32Ty()) : b.CreateZExt(v, b.getInt32Ty());
  };
  Value* result = b.CreateBinOp(i->getOpcode(), wide(i->getOperand(0)), wide(i->getOperand(1)));
  replace(i, b.CreateTrunc(result, i->getType()));
}

Value* reciprocal(llvm::IRBuilderBase& b, Value* x) {
  return b.CreateIntrinsic(llvm::Intrinsic::nvvm_rcp_approx_ftz_f, {}, {x});
}

// |n| / |d| with the signs put back: a quotient has that of both, a remainder that of n.
void expand_wide(BinaryOperator* i) {
  llvm::IRBuilder<> b(i);
  Value *n = i->getOperand(0), *d = i->getOperand(1);
  Value* zero = llvm::ConstantInt::get(i->getType(), 0);
  Value* negative = nullptr;
  if (is_signed(*i)) {
    Value *n_negative = b.CreateICmpSLT(n, zero), *d_negative = b.CreateICmpSLT(d, zero);
    negative = is_quotient(*i) ? b.CreateXor(n_negative, d_negative) : n_negative;
    n = b.CreateSelect(n_negative, b.CreateNeg(n), n);
    d = b.CreateSelect(d_negative, b.CreateNeg(d), d);
  }
  Value* is_long = b.CreateICmpNE(b.CreateLShr(b.CreateOr(n, d), kWord), zero);
  Instruction *long_end = nullptr, *short_end = nullptr;
  llvm::SplitBlockAndInsertIfThenElse(is_long, i, &long_end, &short_end);
  b.SetInsertPoint(long_end);
  Value* long_quotient = unsigned_quotient(b, n, d, reciprocal);
  b.SetInsertPoint(short_end);
  Value* short_quotient = b.CreateZExt(
      b.CreateUDiv(b.CreateTrunc(n, b.getInt32Ty()), b.CreateTrunc(d, b.getInt32Ty())), i->getType());
  b.SetInsertPoint(i);
  llvm::PHINode* q = b.CreatePHI(i->getType(), 2);
  q->addIncoming(long_quotient, long_end->getParent());
  q->addIncoming(short_quotient, short_end->getParent());
  Value* result = is_quotient(*i) ? static_cast<Value*>(q) : b.CreateSub(n, b.CreateMul(q, d));
  if (negative) result = b.CreateSelect(negative, b.CreateNeg(result), result);
  replace(i, result);
}

}  // namespace

void expand_divisions(llvm::Module& module) {
  std::vector<BinaryOperator*> divisions;
  for (llvm::Function& f : module)
    for (Instruction& i : llvm::instructions(f))
      if (i.isIntDivRem() && !llvm::isa<llvm::Constant>(i.getOperand(1)))
        divisions.push_back(llvm::cast<BinaryOperator>(&i));
  for (BinaryOperator* division : divisions)
    for (BinaryOperator* i : scalars_of(division)) {
      const unsigned bits = i->getType()->getIntegerBitWidth();
      if (bits < kWord) widen(i);
      if (bits > kWord) expand_wide(i);
    }
}

}  // namespace tilegen::codegen
