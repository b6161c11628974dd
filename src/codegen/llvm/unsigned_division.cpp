#include "codegen/llvm/unsigned_division.h"

#include <llvm/IR/InlineAsm.h>

namespace tilegen::codegen {

using llvm::APInt;
using llvm::Value;

namespace {

constexpr unsigned kWord = 32, kWide = 64;

Value* widened(llvm::IRBuilder<>& b, Value* v) {
  const unsigned bits = v->getType()->getIntegerBitWidth();
  return b.CreateZExt(v, b.getIntNTy(bits <= kWord ? kWord : kWide));
}

}  // namespace

// With N bits, l = ceil(log2 d) and m = floor(2^N * (2^l - d) / d) + 1: t = high half of m * a, and the
// quotient is (t + (a - t) / 2) >> (l - 1), where a - t does not wrap.
Value* quotient_by_constant(llvm::IRBuilder<>& b, Value* a, const APInt& d) {
  if (d.isOne()) return a;
  Value* n = widened(b, a);
  const unsigned bits = n->getType()->getIntegerBitWidth();
  const unsigned l = d.ceilLogBase2();
  const APInt wide = d.zext(2 * bits + 2);
  const APInt power = APInt::getOneBitSet(2 * bits + 2, l);
  const APInt m = ((power - wide).shl(bits).udiv(wide) + 1).trunc(bits);
  llvm::Type* twice = b.getIntNTy(2 * bits);
  Value* product = b.CreateMul(b.CreateZExt(n, twice), llvm::ConstantInt::get(twice, m.zext(2 * bits)));
  Value* t = b.CreateTrunc(b.CreateLShr(product, bits), n->getType());
  Value* q = b.CreateAdd(t, b.CreateLShr(b.CreateSub(n, t), 1));
  return b.CreateTrunc(b.CreateLShr(q, l - 1), a->getType());
}

// r, an estimate of 2^64 / d, never is above it: conversion, reciprocal and product are off by less than
// 2^-21 of it together. A step takes r + r * (2^64 - r * d) / 2^64, whose error is the square of r's. The
// quotient then is short by two at most.
Value* unsigned_quotient(llvm::IRBuilderBase& b, Value* n, Value* d, const Reciprocal& reciprocal) {
  constexpr float kBelowPower = 0x1p64f - 0x1p44f;
  llvm::Type *wide = b.getInt64Ty(), *twice = b.getIntNTy(2 * kWide);
  const auto high_product = [&](Value* x, Value* y) {
    Value* product = b.CreateMul(b.CreateZExt(x, twice), b.CreateZExt(y, twice));
    return b.CreateTrunc(b.CreateLShr(product, kWide), wide);
  };
  Value* estimate = b.CreateFMul(reciprocal(b, b.CreateUIToFP(d, b.getFloatTy())),
                                 llvm::ConstantFP::get(b.getFloatTy(), kBelowPower));
  Value* r = b.CreateFPToUI(estimate, wide);
  for (int step = 0; step < 2; ++step) r = b.CreateAdd(r, high_product(r, b.CreateMul(r, b.CreateNeg(d))));
  Value* q = high_product(n, r);
  Value* rest = b.CreateSub(n, b.CreateMul(q, d));
  for (int step = 0; step < 2; ++step) {
    Value* more = b.CreateICmpUGE(rest, d);
    q = b.CreateAdd(q, b.CreateZExt(more, wide));
    if (step == 0) rest = b.CreateSelect(more, b.CreateSub(rest, d), rest);
  }
  return q;
}

// An instruction that is none ties its result to its operand.
Value* opaque(llvm::IRBuilder<>& b, Value* v) {
  llvm::Type* type = v->getType();
  Value* wide = widened(b, v);
  auto* signature = llvm::FunctionType::get(wide->getType(), {wide->getType()}, false);
  auto* nothing = llvm::InlineAsm::get(signature, "", "=v,0", /*hasSideEffects=*/false);
  return b.CreateTrunc(b.CreateCall(signature, nothing, {wide}), type);
}

}  // namespace tilegen::codegen
