// Unsigned division by a reciprocal, folded over constants: exact whichever way the reciprocal is rounded.
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <llvm/IR/Constants.h>

#include "codegen/llvm/unsigned_division.h"

namespace tilegen::codegen::test {
namespace {

// 1 / x, `steps` units of the last place off.
Reciprocal off_by(int steps) {
  return [steps](llvm::IRBuilderBase& b, llvm::Value* x) -> llvm::Value* {
    const float exact = 1 / llvm::cast<llvm::ConstantFP>(x)->getValueAPF().convertToFloat();
    return llvm::ConstantFP::get(b.getFloatTy(), std::bit_cast<float>(std::bit_cast<int32_t>(exact) + steps));
  };
}

std::vector<uint64_t> samples() {
  std::vector<uint64_t> s;
  for (int bit = 0; bit < 64; ++bit)
    for (int64_t near : {-1, 0, 1}) s.push_back((uint64_t{1} << bit) + static_cast<uint64_t>(near));
  for (uint64_t v : {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 3, uint64_t{10'000'000'000}}) s.push_back(v);
  std::mt19937_64 random(11);
  for (int i = 0; i < 60; ++i) s.push_back(random() >> random() % 64);
  return s;
}

TEST(UnsignedDivision, ByAReciprocal) {
  llvm::LLVMContext context;
  llvm::IRBuilder<> b(context);
  const std::vector<uint64_t> numbers = samples();
  for (int steps : {-2, 0, 2})
    for (uint64_t d : numbers) {
      if (d == 0) continue;
      std::vector<uint64_t> dividends = numbers;
      for (uint64_t q : numbers)  // a multiple, and what is just below it
        if (q <= UINT64_MAX / d) dividends.insert(dividends.end(), {q * d, q * d - 1});
      for (uint64_t n : dividends) {
        auto* q = llvm::dyn_cast<llvm::ConstantInt>(
            unsigned_quotient(b, b.getInt64(n), b.getInt64(d), off_by(steps)));
        ASSERT_TRUE(q);
        ASSERT_EQ(q->getZExtValue(), n / d) << n << " / " << d;
      }
    }
}

}  // namespace
}  // namespace tilegen::codegen::test
