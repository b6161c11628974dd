// The rounds are written out: ten times two products of 32 by 32 bits. What several words of one block need
// is computed once, by the optimiser.
#include "codegen/llvm/philox.h"

#include <array>

#include "codegen/llvm/types.h"
#include "ir/philox.h"

namespace tilegen::codegen {
namespace {

using llvm::Value;

class Rounds {
 public:
  Rounds(llvm::IRBuilder<>& b, Value* like)
      : b_(b), wide_(shaped_like(like, b.getInt64Ty())), word_(shaped_like(like, b.getInt32Ty())) {}

  Value* low(Value* v) { return b_.CreateTrunc(v, word_); }
  Value* high(Value* v) { return low(b_.CreateLShr(v, wide(32))); }
  Value* word(uint32_t n) { return llvm::ConstantInt::get(word_, n); }
  Value* wide(uint64_t n) { return llvm::ConstantInt::get(wide_, n); }

  void round(std::array<Value*, 4>& c, const std::array<Value*, 2>& key) {
    Value* even = b_.CreateMul(b_.CreateZExt(c[0], wide_), wide(ir::kPhiloxMultipliers[0]));
    Value* odd = b_.CreateMul(b_.CreateZExt(c[2], wide_), wide(ir::kPhiloxMultipliers[1]));
    c = {b_.CreateXor(b_.CreateXor(high(odd), c[1]), key[0]), low(odd),
         b_.CreateXor(b_.CreateXor(high(even), c[3]), key[1]), low(even)};
  }

 private:
  llvm::IRBuilder<>& b_;
  llvm::Type* wide_;
  llvm::Type* word_;
};

}  // namespace

Value* emit_philox(llvm::IRBuilder<>& b, Value* seed, Value* offset, Value* lane) {
  Rounds r(b, seed);
  Value* block = b.CreateLShr(lane, r.wide(2));
  std::array<Value*, 4> counter = {r.low(offset), r.high(offset), r.low(block), r.high(block)};
  std::array<Value*, 2> key = {r.low(seed), r.high(seed)};
  for (int round = 0; round < ir::kPhiloxRounds; ++round) {
    if (round > 0)
      for (size_t i = 0; i < 2; ++i) key[i] = b.CreateAdd(key[i], r.word(ir::kPhiloxKeySteps[i]));
    r.round(counter, key);
  }
  Value* place = b.CreateAnd(r.low(lane), r.word(3));
  Value* odd = b.CreateICmpNE(b.CreateAnd(place, r.word(1)), r.word(0));
  Value* upper = b.CreateICmpUGE(place, r.word(2));
  return b.CreateSelect(upper, b.CreateSelect(odd, counter[3], counter[2]),
                        b.CreateSelect(odd, counter[1], counter[0]));
}

}  // namespace tilegen::codegen
