// Sums of the terms of an index, in 32 bits where they provably fit.
#pragma once

#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "arith/interval.h"

namespace tilegen::codegen {

// Part of a sum: scale * value, the value i32 or i64.
struct Summand {
  llvm::Value* value = nullptr;
  int64_t scale = 1;
  int level = 0;
  arith::Interval range;  // of the value
};

// The same integer in a type of `bits`.
llvm::Value* with_bits(llvm::IRBuilder<>& b, llvm::Value* v, unsigned bits, bool non_negative);

arith::Interval range_of_sum(const std::vector<Summand>& parts);
// In 32 bits, modulo 2^32. Null for an empty sum.
llvm::Value* sum_narrow(llvm::IRBuilder<>& b, const std::vector<Summand>& parts);
// One sum of parts of one level: in 32 bits as far as they provably fit, the rest in 64.
Summand sum_level(llvm::IRBuilder<>& b, const std::vector<Summand>& parts);

}  // namespace tilegen::codegen
