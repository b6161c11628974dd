#include "codegen/llvm/nvptx/expand_division.h"

#include <map>
#include <tuple>
#include <utility>
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

// |n| / |d| with the signs put back.
Value* long_quotient(llvm::IRBuilder<>& b, bool with_signs, Value* n, Value* d) {
  if (!with_signs) return unsigned_quotient(b, n, d, reciprocal);
  Value* zero = llvm::ConstantInt::get(n->getType(), 0);
  const auto is_negative = [&](Value* v) { return b.CreateICmpSLT(v, zero); };
  const auto magnitude = [&](Value* v) { return b.CreateSelect(is_negative(v), b.CreateNeg(v), v); };
  Value* negative = b.CreateXor(is_negative(n), is_negative(d));
  Value* q = unsigned_quotient(b, magnitude(n), magnitude(d), reciprocal);
  return b.CreateSelect(negative, b.CreateNeg(q), q);
}

// Where neither has a bit beyond 32, and so no sign either, by the machine's division of 32 bits.
Value* wide_quotient(BinaryOperator* i) {
  llvm::IRBuilder<> b(i);
  Value *n = i->getOperand(0), *d = i->getOperand(1);
  Value* is_long =
      b.CreateICmpNE(b.CreateLShr(b.CreateOr(n, d), kWord), llvm::ConstantInt::get(i->getType(), 0));
  Instruction *long_end = nullptr, *short_end = nullptr;
  llvm::SplitBlockAndInsertIfThenElse(is_long, i, &long_end, &short_end);
  b.SetInsertPoint(long_end);
  Value* in_full = long_quotient(b, is_signed(*i), n, d);
  llvm::BasicBlock* after_long = b.GetInsertBlock();
  b.SetInsertPoint(short_end);
  Value* in_words = b.CreateZExt(
      b.CreateUDiv(b.CreateTrunc(n, b.getInt32Ty()), b.CreateTrunc(d, b.getInt32Ty())), i->getType());
  b.SetInsertPoint(i);
  llvm::PHINode* q = b.CreatePHI(i->getType(), 2);
  q->addIncoming(in_full, after_long);
  q->addIncoming(in_words, short_end->getParent());
  return q;
}

// Quotients of a block by operands and signedness: what has been divided is not divided for its remainder.
using Quotients = std::map<std::tuple<Value*, Value*, bool>, Value*>;

void expand_wide(BinaryOperator* i, Quotients& known) {
  Value *n = i->getOperand(0), *d = i->getOperand(1);
  Value*& q = known[{n, d, is_signed(*i)}];
  if (!q) q = wide_quotient(i);
  llvm::IRBuilder<> b(i);
  replace(i, is_quotient(*i) ? q : b.CreateSub(n, b.CreateMul(q, d)));
}

}  // namespace

void expand_divisions(llvm::Module& module) {
  std::vector<std::pair<BinaryOperator*, llvm::BasicBlock*>> divisions;  // and the block before any is split
  for (llvm::Function& f : module)
    for (Instruction& i : llvm::instructions(f))
      if (i.isIntDivRem() && !llvm::isa<llvm::Constant>(i.getOperand(1)))
        divisions.emplace_back(llvm::cast<BinaryOperator>(&i), i.getParent());
  Quotients known;
  llvm::BasicBlock* of_block = nullptr;
  for (const auto& [division, block] : divisions) {
    if (std::exchange(of_block, block) != block) known.clear();
    for (BinaryOperator* i : scalars_of(division)) {
      const unsigned bits = i->getType()->getIntegerBitWidth();
      if (bits < kWord) widen(i);
      if (bits > kWord) expand_wide(i, known);
    }
  }
}

}  // namespace tilegen::codegen
