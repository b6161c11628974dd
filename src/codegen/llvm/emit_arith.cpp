// Operators on held values, scalar or vector.
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/math.h"
#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using ir::DType;
using ir::ExprNode;
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

Value* KernelEmitter::emit_unary(const ExprNode& n, Value* a) {
  DType from = exprs_.type(n.a);
  switch (n.op) {
    case ExprOp::cast:
      return cast_held(b_, from, n.type, a);
    case ExprOp::neg:
      return ir::is_float(n.type) ? b_.CreateFNeg(a) : b_.CreateNeg(a);
    case ExprOp::abs:
      if (ir::is_float(n.type)) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
      return signed_type(n.type) ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, b_.getFalse()) : a;
    case ExprOp::logical_not:
    case ExprOp::bit_not:
      return b_.CreateNot(a);
    default:
      return round_held(b_, n.type, emit_math(n, a));
  }
}

Value* KernelEmitter::emit_math(const ExprNode& n, Value* a) {
  switch (n.op) {
    case ExprOp::exp:
      return math::emit_exp(b_, features_, a);
    case ExprOp::exp2:
      return math::emit_exp2(b_, features_, a);
    case ExprOp::log:
      return math::emit_log(b_, features_, a);
    case ExprOp::log2:
      return math::emit_log2(b_, features_, a);
    case ExprOp::tanh:
      return math::emit_tanh(b_, features_, a);
    case ExprOp::erf:
      return math::emit_erf(b_, features_, a);
    case ExprOp::sigmoid:
      return math::emit_sigmoid(b_, features_, a);
    case ExprOp::sqrt:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
    case ExprOp::rsqrt:
      return b_.CreateFDiv(llvm::ConstantFP::get(a->getType(), 1.0),
                           b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a));
    case ExprOp::floor:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a);
    case ExprOp::ceil:
      return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, a);
    default:
      break;
  }
  refuse(std::string("no host code for operation '") + ir::expr_text(n.op) + "'");
  return a;
}

Value* KernelEmitter::emit_binary(const ExprNode& n, Value* a, Value* b) {
  match_lanes(a, b);
  DType operand = exprs_.type(n.a);
  switch (ir::expr_class(n.op)) {
    case ir::ExprClass::compare:
      return emit_compare(n.op, operand, a, b);
    case ir::ExprClass::logic:
      return n.op == ExprOp::logical_and ? b_.CreateAnd(a, b) : b_.CreateOr(a, b);
    default:
      break;
  }
  return ir::is_float(n.type) ? emit_float_binary(n, a, b) : emit_int_binary(n, a, b);
}

Value* KernelEmitter::emit_float_binary(const ExprNode& n, Value* a, Value* b) {
  auto rounded = [&](Value* v) { return round_held(b_, n.type, v); };
  switch (n.op) {
    case ExprOp::add:
      return rounded(b_.CreateFAdd(a, b));
    case ExprOp::sub:
      return rounded(b_.CreateFSub(a, b));
    case ExprOp::mul:
      return rounded(b_.CreateFMul(a, b));
    case ExprOp::div:
      return rounded(b_.CreateFDiv(a, b));
    case ExprOp::min:
      return float_min(b_, a, b);
    case ExprOp::max:
      return float_max(b_, a, b);
    default:
      break;
  }
  refuse(std::string("no host code for operation '") + ir::expr_text(n.op) + "' on floats");
  return a;
}

Value* KernelEmitter::emit_int_binary(const ExprNode& n, Value* a, Value* b) {
  bool sign = signed_type(n.type);
  auto amount = [&] {
    return b_.CreateAnd(b, number_like(b, static_cast<uint64_t>(ir::dtype_bits(n.type) - 1)));
  };
  using namespace llvm::Intrinsic;
  switch (n.op) {
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
    case ExprOp::shl:
      return b_.CreateShl(a, amount());
    case ExprOp::shr:
      return sign ? b_.CreateAShr(a, amount()) : b_.CreateLShr(a, amount());
    case ExprOp::floordiv:
    case ExprOp::floormod:
      return emit_division(n, a, b);
    default:
      break;
  }
  refuse(std::string("no host code for operation '") + ir::expr_text(n.op) + "' on integers");
  return a;
}

Value* KernelEmitter::emit_compare(ExprOp op, DType type, Value* a, Value* b) {
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

// Floored division and its remainder; a zero divisor gives 0 and nothing traps.
Value* KernelEmitter::emit_division(const ExprNode& n, Value* a, Value* b) {
  bool quotient = n.op == ExprOp::floordiv;
  bool unsigned_ok = !signed_type(n.type) || (lanes_.non_negative(n.a) && lanes_.non_negative(n.b));
  const llvm::ConstantInt* constant = uniform_constant(b);
  if (constant && constant->isZero()) return zero_like(a);
  if (constant && (!signed_type(n.type) || !constant->isNegative())) {
    const llvm::APInt& d = constant->getValue();
    if (d.isPowerOf2()) {  // an arithmetic shift floors, a mask is the floored remainder
      if (!quotient) return b_.CreateAnd(a, number_like(a, d.getZExtValue() - 1));
      Value* shift = number_like(a, d.logBase2());
      return signed_type(n.type) ? b_.CreateAShr(a, shift) : b_.CreateLShr(a, shift);
    }
    if (unsigned_ok) return quotient ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
    Value* q = b_.CreateSDiv(a, b);
    Value* r = b_.CreateSub(a, b_.CreateMul(q, b));
    Value* below = b_.CreateICmpSLT(r, zero_like(r));
    if (quotient) return b_.CreateAdd(q, b_.CreateSExt(below, q->getType()));
    return b_.CreateSelect(below, b_.CreateAdd(r, b), r);
  }
  // LLVM 19 takes a select's arm for never chosen when any lane of it divides by zero; behind a freeze it cannot look.
  Value* is_zero = b_.CreateICmpEQ(b, zero_like(b));
  if (unsigned_ok) {
    Value* safe = b_.CreateFreeze(b_.CreateSelect(is_zero, number_like(b, 1), b));
    Value* v = quotient ? b_.CreateUDiv(a, safe) : b_.CreateURem(a, safe);
    return quotient ? b_.CreateSelect(is_zero, zero_like(v), v) : b_.CreateSelect(is_zero, zero_like(v), v);
  }
  Value* minus_one = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(b->getType()));
  Value* safe = b_.CreateFreeze(b_.CreateSelect(b_.CreateOr(is_zero, minus_one), number_like(b, 1), b));
  Value* q = b_.CreateSDiv(a, safe);
  Value* r = b_.CreateSub(a, b_.CreateMul(q, safe));
  Value* differs = b_.CreateICmpSLT(b_.CreateXor(r, safe), zero_like(r));
  Value* off = b_.CreateAnd(b_.CreateICmpNE(r, zero_like(r)), differs);
  if (quotient) {
    q = b_.CreateAdd(q, b_.CreateSExt(off, q->getType()));
    q = b_.CreateSelect(minus_one, b_.CreateNeg(a), q);
    return b_.CreateSelect(is_zero, zero_like(q), q);
  }
  // a divisor of 0 or -1 ran as 1, whose remainder is the wanted 0
  return b_.CreateSelect(off, b_.CreateAdd(r, b), r);
}

}  // namespace tilegen::codegen
