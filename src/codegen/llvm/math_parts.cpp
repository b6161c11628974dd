#include "codegen/llvm/math_parts.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/types.h"

namespace tilegen::codegen::math {

using llvm::Value;

llvm::Type* Parts::integer_type() { return integer_type(is_double() ? 64 : 32); }

llvm::Type* Parts::integer_type(unsigned bits) {
  llvm::Type* i = b_.getIntNTy(bits);
  auto* v = llvm::dyn_cast<llvm::VectorType>(type_);
  return v ? llvm::VectorType::get(i, v->getElementCount()) : i;
}

Value* Parts::integer(int64_t v) { return llvm::ConstantInt::getSigned(integer_type(), v); }

Value* Parts::fma(Value* a, Value* b, Value* c) {
  if (!features_.fma) return b_.CreateFAdd(b_.CreateFMul(a, b), c);
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {a, b, c});
}

// Without the instruction, of f32 in double; of f64 by Veltkamp's splitting, which overflows beyond 2^995.
Value* Parts::residual(Value* x, Value* y, Value* product) {
  if (features_.fma) return fma(x, y, b_.CreateFNeg(product));
  if (!is_double()) {
    llvm::Type* wide = shaped_like(x, b_.getDoubleTy());
    auto widened = [&](Value* v) { return b_.CreateFPExt(v, wide); };
    Value* exact = b_.CreateFMul(widened(x), widened(y));
    return b_.CreateFPTrunc(b_.CreateFSub(exact, widened(product)), type_);
  }
  auto split = [&](Value* v) {
    Value* c = b_.CreateFMul(v, number(0x1.0000002p27));
    Value* high = b_.CreateFSub(c, b_.CreateFSub(c, v));
    return Pair{high, b_.CreateFSub(v, high)};
  };
  const Pair a = split(x), b = split(y);
  Value* r = b_.CreateFSub(b_.CreateFMul(a.high, b.high), product);
  r = b_.CreateFAdd(r, b_.CreateFMul(a.high, b.low));
  r = b_.CreateFAdd(r, b_.CreateFMul(a.low, b.high));
  return b_.CreateFAdd(r, b_.CreateFMul(a.low, b.low));
}

Pair Parts::sum(Value* a, Value* b) {
  Value* s = b_.CreateFAdd(a, b);
  Value* of_b = b_.CreateFSub(s, a);
  Value* of_a = b_.CreateFSub(s, of_b);
  return {s, b_.CreateFAdd(b_.CreateFSub(a, of_a), b_.CreateFSub(b, of_b))};
}

Pair Parts::sum_ordered(Value* a, Value* b) {
  Value* s = b_.CreateFAdd(a, b);
  return {s, b_.CreateFSub(b, b_.CreateFSub(s, a))};
}

// PTX without a rounding is contracted by ptxas.
Value* Parts::rounded_product(Value* a, Value* b) {
  if (features_.nvptx && !type_->isVectorTy())
    return b_.CreateIntrinsic(is_double() ? llvm::Intrinsic::nvvm_mul_rn_d : llvm::Intrinsic::nvvm_mul_rn_f,
                              {}, {a, b});
  Value* p = b_.CreateFMul(a, b);
  // LLVM 19's AMDGPU back end has no code for the fence of a value that is the same for a wave.
  if (features_.amdgpu && !type_->isVectorTy())
    return b_.CreateCall(
        llvm::InlineAsm::get(llvm::FunctionType::get(type_, {type_}, false), "", "=v,0", false), {p});
  return b_.CreateArithmeticFence(p, type_);
}

Pair Parts::product(Value* a, Value* b) {
  Value* p = rounded_product(a, b);
  return {p, residual(a, b, p)};
}

Pair Parts::product(Pair a, Pair b) {
  const Pair p = product(a.high, b.high);
  return sum_ordered(p.high, fma(a.high, b.low, fma(a.low, b.high, p.low)));
}

Value* Parts::polynomial(Value* x, std::initializer_list<double> coefficients) {
  Value* p = nullptr;
  for (double c : coefficients) p = p ? fma(p, x, number(c)) : number(c);
  return p;
}

Value* Parts::nearest(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x); }
Value* Parts::trunc(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x); }
Value* Parts::negated_if(Value* condition, Value* x) { return select(condition, b_.CreateFNeg(x), x); }
Value* Parts::magnitude(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
// By bits where the back end would compare and select.
Value* Parts::with_sign_of(Value* m, Value* sign) {
  if (!features_.nvptx || is_double()) return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, m, sign);
  constexpr int64_t kSign = int64_t{1} << 31;
  return from_bits(
      b_.CreateOr(b_.CreateAnd(bits(m), integer(kSign - 1)), b_.CreateAnd(bits(sign), integer(kSign))));
}

Value* Parts::clamp(Value* x, double low, double high) {
  x = b_.CreateSelect(b_.CreateFCmpOLT(x, number(low)), number(low), x);
  return b_.CreateSelect(b_.CreateFCmpOGT(x, number(high)), number(high), x);
}

Value* Parts::bits(Value* x) { return b_.CreateBitCast(x, integer_type()); }
Value* Parts::from_bits(Value* i) { return b_.CreateBitCast(i, type_); }

// Adding 1.5 * 2^mantissa leaves an integral value in the low mantissa bits; works where no conversion to
// 64-bit integers exists.
Value* Parts::to_integer(Value* integral) {
  Value* magic = number(is_double() ? 0x1.8p52 : 0x1.8p23);
  return b_.CreateSub(bits(b_.CreateFAdd(integral, magic)), bits(magic));
}

Value* Parts::from_integer(Value* i) {
  Value* magic = number(is_double() ? 0x1.8p52 : 0x1.8p23);
  return b_.CreateFSub(from_bits(b_.CreateAdd(i, bits(magic))), magic);
}

// The instruction for this exists on whole 512-bit registers.
Value* Parts::scale_native(Value* x, Value* n) {
  const int64_t lanes = lane_count(x), whole = is_double() ? 8 : 16;
  if (!features_.avx512 || lanes < whole || lanes % whole != 0) return nullptr;
  auto id = is_double() ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512
                        : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
  Value* all = is_double() ? b_.getInt8(0xff) : static_cast<Value*>(b_.getInt16(0xffff));
  auto part = [&](Value* v, int64_t at) {
    std::vector<int> pick;
    for (int64_t i = 0; i < whole; ++i) pick.push_back(static_cast<int>(at + i));
    return lanes == whole ? v : b_.CreateShuffleVector(v, pick);
  };
  std::vector<Value*> pieces;
  for (int64_t at = 0; at < lanes; at += whole) {
    Value* p = part(x, at);
    pieces.push_back(b_.CreateIntrinsic(id, {}, {p, part(n, at), p, all, b_.getInt32(4)}));
  }
  Value* joined = pieces[0];
  for (size_t i = 1; i < pieces.size(); ++i) {
    std::vector<int> order;
    const int64_t have = lane_count(joined);
    for (int64_t l = 0; l < have + whole; ++l) order.push_back(static_cast<int>(l));
    // a shuffle takes operands of one length: pad the piece first
    std::vector<int> pad;
    for (int64_t l = 0; l < have; ++l) pad.push_back(l < whole ? static_cast<int>(l) : -1);
    joined = b_.CreateShuffleVector(joined, b_.CreateShuffleVector(pieces[i], pad), order);
  }
  return joined;
}

// Two factors, because 2^n alone may not be representable; the first product is exact.
Value* Parts::scale(Value* x, Value* n) {
  if (Value* v = scale_native(x, n)) return v;
  Value* whole = to_integer(n);
  Value* half = b_.CreateAShr(whole, integer(1));
  return b_.CreateFMul(b_.CreateFMul(x, power_of_two(half)), power_of_two(b_.CreateSub(whole, half)));
}

Value* Parts::power_of_two(Value* exponent) {
  const int64_t bias = is_double() ? 1023 : 127, mantissa = is_double() ? 52 : 23;
  return from_bits(b_.CreateShl(b_.CreateAdd(exponent, integer(bias)), integer(mantissa)));
}

}  // namespace tilegen::codegen::math
