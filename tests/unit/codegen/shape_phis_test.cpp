// Which phis are vectors behind shape_phis, in a loop that carries four elements and a pair: of a product, of
// a load, of elements in another order.
#include "codegen/llvm/amdgpu/shape_phis.h"

#include <array>
#include <functional>

#include <gtest/gtest.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Verifier.h>

namespace tilegen::codegen {
namespace {

using llvm::Value;

class ShapePhis : public ::testing::Test {
 protected:
  using Four = std::array<Value*, 4>;
  using Step = std::function<Four(const Four&)>;

  // out[0 .. 4] = what `step` makes of zeros, in two iterations; as one vector from the loop's end on.
  void loop(const Step& step) {
    type_ = llvm::FixedVectorType::get(b_.getFloatTy(), 4);
    auto* kernel = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy()}, false);
    f_ = llvm::Function::Create(kernel, llvm::Function::ExternalLinkage, "kernel", module_);
    auto* entry = llvm::BasicBlock::Create(context_, "entry", f_);
    auto* body = llvm::BasicBlock::Create(context_, "body", f_);
    auto* end = llvm::BasicBlock::Create(context_, "end", f_);
    b_.SetInsertPoint(entry);
    b_.CreateBr(body);
    b_.SetInsertPoint(body);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt32Ty(), 2);
    Four sums;
    for (Value*& s : sums) s = b_.CreatePHI(b_.getFloatTy(), 2);
    const Four next = step(sums);
    for (size_t n = 0; n < 4; ++n) {
      llvm::cast<llvm::PHINode>(sums[n])->addIncoming(llvm::ConstantFP::get(b_.getFloatTy(), 0), entry);
      llvm::cast<llvm::PHINode>(sums[n])->addIncoming(next[n], body);
    }
    i->addIncoming(b_.getInt32(0), entry);
    i->addIncoming(b_.CreateAdd(i, b_.getInt32(1)), body);
    b_.CreateCondBr(b_.CreateICmpEQ(i, b_.getInt32(1)), end, body);
    b_.SetInsertPoint(end);
    b_.CreateStore(together(next), f_->getArg(0));
    b_.CreateRetVoid();
    shape_phis(module_);
    ASSERT_FALSE(llvm::verifyModule(module_, &llvm::errs()));
  }

  Value* together(const Four& elements) {
    Value* all = llvm::PoisonValue::get(type_);
    for (size_t n = 0; n < 4; ++n) all = b_.CreateInsertElement(all, elements[n], uint64_t{n});
    return all;
  }
  Four apart(Value* vector) {
    Four elements;
    for (size_t n = 0; n < 4; ++n) elements[n] = b_.CreateExtractElement(vector, uint64_t{n});
    return elements;
  }
  Value* product(Value* sums) {
    auto* type = llvm::FunctionType::get(type_, {type_}, false);
    auto callee = module_.getOrInsertFunction("product", type);
    llvm::cast<llvm::Function>(callee.getCallee())->setDoesNotAccessMemory();
    return b_.CreateCall(callee, {sums});
  }

  // Of all phis but the loop's index.
  int phis(bool vectors) const {
    int n = 0;
    for (const llvm::Instruction& i : llvm::instructions(*f_))
      n += llvm::isa<llvm::PHINode>(i) && !i.getType()->isIntegerTy() && i.getType()->isVectorTy() == vectors;
    return n;
  }
  int inserted() const {
    int n = 0;
    for (const llvm::Instruction& i : llvm::instructions(*f_)) n += llvm::isa<llvm::InsertElementInst>(i);
    return n;
  }

  llvm::LLVMContext context_;
  llvm::Module module_{"test", context_};
  llvm::IRBuilder<> b_{context_};
  llvm::FixedVectorType* type_ = nullptr;
  llvm::Function* f_ = nullptr;
};

TEST_F(ShapePhis, SumsOfAProductAreOneValue) {
  loop([&](const Four& sums) { return apart(product(together(sums))); });
  EXPECT_EQ(phis(true), 1);
  EXPECT_EQ(phis(false), 0);
  EXPECT_EQ(inserted(), 0);
}

TEST_F(ShapePhis, ElementsThatChangePlacesStayApart) {
  loop([&](const Four& sums) {
    const Four s = apart(product(together(sums)));
    return Four{s[1], s[1], s[2], s[3]};
  });
  EXPECT_EQ(phis(true), 0);
  EXPECT_EQ(phis(false), 4);
}

TEST_F(ShapePhis, ALoadsWordsStayApart) {
  loop([&](const Four&) { return apart(b_.CreateLoad(type_, f_->getArg(0))); });
  EXPECT_EQ(phis(true), 0);
  EXPECT_EQ(phis(false), 4);
}

// As the vectoriser leaves them: halves are phis of pairs, multiplied on the way to the product.
TEST_F(ShapePhis, PairsOfASumAreSplit) {
  auto* pair = llvm::FixedVectorType::get(b_.getFloatTy(), 2);
  std::array<llvm::PHINode*, 2> halves;
  loop([&](const Four& sums) {
    llvm::BasicBlock* body = b_.GetInsertBlock();
    Value* sum = product(together(sums));
    for (int h = 0; h < 2; ++h) {
      halves[h] = llvm::PHINode::Create(pair, 2, "", body->begin());
      halves[h]->addIncoming(llvm::Constant::getNullValue(pair), &f_->getEntryBlock());
      halves[h]->addIncoming(b_.CreateShuffleVector(sum, {2 * h, 2 * h + 1}), body);
    }
    Value* scaled = b_.CreateFMul(b_.CreateShuffleVector(halves[0], halves[1], {0, 1, 2, 3}), sum);
    return apart(scaled);
  });
  EXPECT_EQ(phis(true), 2);  // the product's and the scaled one
  EXPECT_EQ(phis(false), 0);
  EXPECT_EQ(inserted(), 0);
}

}  // namespace
}  // namespace tilegen::codegen
