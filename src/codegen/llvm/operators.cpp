#include "codegen/llvm/operators.h"

#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/math.h"
#include "codegen/llvm/math_parts.h"
#include "codegen/llvm/philox.h"
#include "codegen/llvm/types.h"
#include "codegen/llvm/unsigned_division.h"

namespace tilegen::codegen {

using ir::DType;
using ir::ExprOp;
using llvm::Value;

namespace {

bool signed_type(DType t) { return ir::dtype_kind(t) == ir::DTypeKind::signed_int; }

Value* zero_like(Value* v) { return llvm::Constant::getNullValue(v->getType()); }
Value* number_like(Value* v, uint64_t n) { return llvm::ConstantInt::get(v->getType(), n); }

// The constant all lanes share, if it is one.
const llvm::ConstantInt* uniform_constant(Value* v) {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(v)) return c;
  if (auto* c = llvm::dyn_cast<llvm::Constant>(v); c && v->getType()->isVectorTy())
    return llvm::dyn_cast_or_null<llvm::ConstantInt>(c->getSplatValue());
  return nullptr;
}

}  // namespace

Value* Operators::unknown(ExprOp op, const char* on, Value* a) {
  if (!refusal_) refusal_ = std::string("no code for operation '") + ir::expr_text(op) + "'" + on;
  return a;
}

Value* Operators::unary(ExprOp op, DType from, DType to, Value* a) {
  switch (op) {
    case ExprOp::cast:
      return cast_held(b_, features_, from, to, a);
    case ExprOp::bitcast:
      return bitcast_held(b_, from, to, a);
    case ExprOp::neg:
      return ir::is_float(to) ? b_.CreateFNeg(a) : b_.CreateNeg(a);
    case ExprOp::abs:
      if (ir::is_float(to)) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
      return signed_type(to) ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, b_.getFalse()) : a;
    case ExprOp::logical_not:
    case ExprOp::bit_not:
      return b_.CreateNot(a);
    case ExprOp::isnan:
      return b_.CreateFCmpUNO(a, a);
    case ExprOp::isinf:
      return b_.CreateFCmpOEQ(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a),
                              llvm::ConstantFP::getInfinity(a->getType()));
    case ExprOp::popcount:
    case ExprOp::clz:
    case ExprOp::ctz:
      return bit_count(op, a);
    default:
      return round_held(b_, features_, to, function(op, to, a));
  }
}

Value* Operators::function(ExprOp op, DType t, Value* a) {
  MachineFeatures f = features_;
  f.approximate = f.nvptx && ir::dtype_bits(t) == 16;
  switch (op) {
    case ExprOp::exp:
      return math::emit_exp(b_, f, a);
    case ExprOp::exp2:
      return math::emit_exp2(b_, f, a);
    case ExprOp::log:
      return math::emit_log(b_, f, a);
    case ExprOp::log2:
      return math::emit_log2(b_, f, a);
    case ExprOp::tanh:
      return math::emit_tanh(b_, f, a);
    case ExprOp::erf:
      return math::emit_erf(b_, f, a);
    case ExprOp::sigmoid:
      return math::emit_sigmoid(b_, f, a);
    case ExprOp::sqrt:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
    case ExprOp::rsqrt:
      return math::emit_rsqrt(b_, f, a);
    case ExprOp::sin:
      return math::emit_sin(b_, f, a);
    case ExprOp::cos:
      return math::emit_cos(b_, f, a);
    case ExprOp::tan:
      return math::emit_tan(b_, f, a);
    case ExprOp::asin:
      return math::emit_asin(b_, f, a);
    case ExprOp::acos:
      return math::emit_acos(b_, f, a);
    case ExprOp::atan:
      return math::emit_atan(b_, f, a);
    case ExprOp::exp10:
      return math::emit_exp10(b_, f, a);
    case ExprOp::expm1:
      return math::emit_expm1(b_, f, a);
    case ExprOp::log1p:
      return math::emit_log1p(b_, f, a);
    case ExprOp::cbrt:
      return math::emit_cbrt(b_, f, a);
    case ExprOp::erfc:
      return math::emit_erfc(b_, f, a);
    case ExprOp::round:
      return math::emit_round(b_, f, a);
    case ExprOp::rint:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, a);
    case ExprOp::trunc:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, a);
    case ExprOp::floor:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a);
    case ExprOp::ceil:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, a);
    default:
      break;
  }
  return unknown(op, "", a);
}

Value* Operators::bit_count(ExprOp op, Value* a) {
  if (op == ExprOp::popcount) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, a);
  const auto id = op == ExprOp::clz ? llvm::Intrinsic::ctlz : llvm::Intrinsic::cttz;
  return b_.CreateBinaryIntrinsic(id, a, b_.getFalse());  // of 0: the width
}

Value* Operators::high_product(DType t, Value* a, Value* b) {
  const auto bits = static_cast<unsigned>(ir::dtype_bits(t));
  // On the host LLVM may widen divisions in front of a product of 128 bits, and calls a function for them.
  if (bits == 64 && !features_.nvptx && !features_.amdgpu) return high_product_of_halves(t, a, b);
  llvm::Type* wide = shaped_like(a, b_.getIntNTy(2 * bits));
  auto widened = [&](Value* v) { return signed_type(t) ? b_.CreateSExt(v, wide) : b_.CreateZExt(v, wide); };
  Value* product = b_.CreateMul(widened(a), widened(b));
  return b_.CreateTrunc(b_.CreateLShr(product, number_like(product, bits)), a->getType());
}

// Of 64 bits: a = ah 2^32 + al, b likewise; a number below 0 is that of its bits less 2^64.
Value* Operators::high_product_of_halves(DType t, Value* a, Value* b) {
  Value* half = number_like(a, 32);
  Value* mask = number_like(a, 0xffffffff);
  Value *al = b_.CreateAnd(a, mask), *ah = b_.CreateLShr(a, half), *bl = b_.CreateAnd(b, mask),
        *bh = b_.CreateLShr(b, half);
  Value* low = b_.CreateLShr(b_.CreateMul(al, bl), half);
  Value* first = b_.CreateAdd(b_.CreateMul(ah, bl), low);
  Value* second = b_.CreateAdd(b_.CreateMul(al, bh), b_.CreateAnd(first, mask));
  Value* high = b_.CreateAdd(b_.CreateMul(ah, bh),
                             b_.CreateAdd(b_.CreateLShr(first, half), b_.CreateLShr(second, half)));
  if (!signed_type(t)) return high;
  Value* sign = number_like(a, 63);
  Value* less =
      b_.CreateAdd(b_.CreateAnd(b_.CreateAShr(a, sign), b), b_.CreateAnd(b_.CreateAShr(b, sign), a));
  return b_.CreateSub(high, less);
}

Value* Operators::ternary(ExprOp op, DType t, Value* a, Value* b, Value* c) {
  if (op == ExprOp::select) return b_.CreateSelect(a, b, c);
  if (op == ExprOp::philox) return emit_philox(b_, a, b, c);
  Value* v = op == ExprOp::fma ? math::emit_fma(b_, features_, a, b, c) : nullptr;
  if (!v) return unknown(op, " on f64 of a machine without fused multiply-adds", a);
  return round_held(b_, features_, t, v);
}

Value* Operators::binary(ExprOp op, DType operand, DType result, Value* a, Value* b, bool non_negative) {
  switch (ir::expr_class(op)) {
    case ir::ExprClass::compare:
      return compare(op, operand, a, b);
    case ir::ExprClass::logic:
      return op == ExprOp::logical_and ? b_.CreateAnd(a, b) : b_.CreateOr(a, b);
    default:
      break;
  }
  return ir::is_float(result) ? on_floats(op, result, a, b) : on_integers(op, result, a, b, non_negative);
}

Value* Operators::on_floats(ExprOp op, DType t, Value* a, Value* b) {
  auto rounded = [&](Value* v) { return round_held(b_, features_, t, v); };
  switch (op) {
    case ExprOp::add:
      return rounded(b_.CreateFAdd(a, b));
    case ExprOp::sub:
      return rounded(b_.CreateFSub(a, b));
    case ExprOp::mul:
      return rounded(b_.CreateFMul(a, b));
    case ExprOp::div:
      return rounded(b_.CreateFDiv(a, b));
    case ExprOp::min:
      return float_min(b_, features_, a, b);
    case ExprOp::max:
      return float_max(b_, features_, a, b);
    case ExprOp::pow:
      return rounded(math::emit_pow(b_, features_, a, b));
    case ExprOp::atan2:
      return rounded(math::emit_atan2(b_, features_, a, b));
    case ExprOp::copysign:
      return math::Parts(b_, features_, a).with_sign_of(a, b);
    case ExprOp::fmod:
      if (Value* v = math::emit_fmod(b_, features_, a, b)) return rounded(v);
      return unknown(op, " on f64 of a machine without fused multiply-adds", a);
    default:
      break;
  }
  return unknown(op, " on floats", a);
}

Value* Operators::on_integers(ExprOp op, DType t, Value* a, Value* b, bool non_negative) {
  bool sign = signed_type(t);
  auto amount = [&] { return b_.CreateAnd(b, number_like(b, static_cast<uint64_t>(ir::dtype_bits(t) - 1))); };
  using namespace llvm::Intrinsic;
  switch (op) {
    case ExprOp::add:
      return b_.CreateAdd(a, b);
    case ExprOp::sub:
      return b_.CreateSub(a, b);
    case ExprOp::mul:
      return b_.CreateMul(a, b);
    case ExprOp::min:
      return b_.CreateBinaryIntrinsic(sign ? smin : umin, a, b);
    case ExprOp::max:
      return b_.CreateBinaryIntrinsic(sign ? smax : umax, a, b);
    case ExprOp::bit_and:
      return b_.CreateAnd(a, b);
    case ExprOp::bit_or:
      return b_.CreateOr(a, b);
    case ExprOp::bit_xor:
      return b_.CreateXor(a, b);
    case ExprOp::mulhi:
      return high_product(t, a, b);
    case ExprOp::shl:
      return b_.CreateShl(a, amount());
    case ExprOp::shr:
      return sign ? b_.CreateAShr(a, amount()) : b_.CreateLShr(a, amount());
    case ExprOp::floordiv:
    case ExprOp::floormod:
      return division(op, t, a, b, non_negative);
    default:
      break;
  }
  return unknown(op, " on integers", a);
}

Value* Operators::compare(ExprOp op, DType type, Value* a, Value* b) {
  if (ir::is_float(type)) {
    switch (op) {
      case ExprOp::lt:
        return b_.CreateFCmpOLT(a, b);
      case ExprOp::le:
        return b_.CreateFCmpOLE(a, b);
      case ExprOp::eq:
        return b_.CreateFCmpOEQ(a, b);
      default:
        return b_.CreateFCmpUNE(a, b);
    }
  }
  bool sign = signed_type(type);
  switch (op) {
    case ExprOp::lt:
      return sign ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    case ExprOp::le:
      return sign ? b_.CreateICmpSLE(a, b) : b_.CreateICmpULE(a, b);
    case ExprOp::eq:
      return b_.CreateICmpEQ(a, b);
    default:
      return b_.CreateICmpNE(a, b);
  }
}

// The divisor is not 0.
Value* Operators::unsigned_division(bool quotient, Value* a, Value* b) {
  if (!features_.amdgpu) return quotient ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
  const llvm::ConstantInt* constant = uniform_constant(b);
  if (!constant) {
    a = opaque(b_, a);
    return quotient ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
  }
  Value* q = quotient_by_constant(b_, a, constant->getValue());
  return quotient ? q : b_.CreateSub(a, b_.CreateMul(q, b));
}

// The divisor is a constant above 0.
Value* Operators::by_constant(bool quotient, DType t, Value* a, Value* b, bool non_negative) {
  const llvm::APInt& d = uniform_constant(b)->getValue();
  if (d.isPowerOf2()) {  // an arithmetic shift floors, a mask is the floored remainder
    if (!quotient) return b_.CreateAnd(a, number_like(a, d.getZExtValue() - 1));
    Value* shift = number_like(a, d.logBase2());
    return signed_type(t) && !non_negative ? b_.CreateAShr(a, shift) : b_.CreateLShr(a, shift);
  }
  if (!signed_type(t) || non_negative) return unsigned_division(quotient, a, b);
  Value* q = b_.CreateSDiv(a, b);
  Value* r = b_.CreateSub(a, b_.CreateMul(q, b));
  Value* below = b_.CreateICmpSLT(r, zero_like(r));
  if (quotient) return b_.CreateAdd(q, b_.CreateSExt(below, q->getType()));
  return b_.CreateSelect(below, b_.CreateAdd(r, b), r);
}

// Floored division and its remainder; a zero divisor gives 0 and nothing traps.
Value* Operators::division(ExprOp op, DType t, Value* a, Value* b, bool non_negative, bool non_zero) {
  bool quotient = op == ExprOp::floordiv;
  bool unsigned_ok = !signed_type(t) || non_negative;
  const llvm::ConstantInt* constant = uniform_constant(b);
  if (constant && constant->isZero()) return zero_like(a);
  if (constant && (!signed_type(t) || !constant->isNegative()))
    return by_constant(quotient, t, a, b, non_negative);
  // LLVM 19 takes a select's arm for never chosen when any lane of it divides by zero; after a freeze it
  // cannot look.
  Value* is_zero = non_zero ? nullptr : b_.CreateICmpEQ(b, zero_like(b));
  auto unless_zero = [&](Value* v) { return is_zero ? b_.CreateSelect(is_zero, zero_like(v), v) : v; };
  if (unsigned_ok) {
    Value* safe = is_zero ? b_.CreateFreeze(b_.CreateSelect(is_zero, number_like(b, 1), b)) : b;
    return unless_zero(unsigned_division(quotient, a, safe));
  }
  Value* minus_one = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(b->getType()));
  Value* as_one = is_zero ? b_.CreateOr(is_zero, minus_one) : minus_one;
  Value* safe = b_.CreateFreeze(b_.CreateSelect(as_one, number_like(b, 1), b));
  Value* q = b_.CreateSDiv(a, safe);
  Value* r = b_.CreateSub(a, b_.CreateMul(q, safe));
  Value* differs = b_.CreateICmpSLT(b_.CreateXor(r, safe), zero_like(r));
  Value* off = b_.CreateAnd(b_.CreateICmpNE(r, zero_like(r)), differs);
  if (quotient) {
    q = b_.CreateAdd(q, b_.CreateSExt(off, q->getType()));
    return unless_zero(b_.CreateSelect(minus_one, b_.CreateNeg(a), q));
  }
  // a divisor of 0 or -1 ran as 1, whose remainder is the wanted 0
  return b_.CreateSelect(off, b_.CreateAdd(r, b), r);
}

}  // namespace tilegen::codegen
