// Expressions. The value of an i64 expression is an i32 where its range allows, else an i64.
#include "codegen/llvm/gpu/gpu_emitter.h"
#include "codegen/llvm/types.h"
#include "thread/reciprocal.h"

namespace tilegen::codegen {

using arith::Interval;
using ir::DType;
using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using llvm::Value;

namespace {

constexpr Interval kI32{INT32_MIN, INT32_MAX};

bool is_index(DType t) { return t == DType::i64; }

// Operators whose low bits depend on the low bits of the operands only.
bool is_modular(ExprOp op) {
  return op == ExprOp::add || op == ExprOp::sub || op == ExprOp::mul || op == ExprOp::bit_and ||
         op == ExprOp::bit_or || op == ExprOp::bit_xor;
}

Interval exact_range(ExprOp op, Interval a, Interval b) {
  if (op == ExprOp::add) return arith::interval_add(a, b);
  if (op == ExprOp::sub) return arith::interval_sub(a, b);
  if (op == ExprOp::mul) return arith::interval_mul(a, b);
  return Interval::whole();
}

}  // namespace

Value* GpuEmitter::resized(Value* v, unsigned bits, ExprId e) {
  if (v->getType()->getIntegerBitWidth() == bits) return v;
  return with_bits(b_, v, bits, facts_.range(e).lo >= 0);
}

Value* GpuEmitter::held_value(ExprId e) {
  Value* v = value(e);
  return is_index(exprs_.type(e)) ? resized(v, 64, e) : v;
}

GpuEmitter::Emitted GpuEmitter::emit_expr(ExprId e) {
  if (auto known = memo_.find(e.value); known != memo_.end()) return known->second;
  Emitted r = compute_expr(e);
  remember(e.value, r);
  return r;
}

GpuEmitter::Emitted GpuEmitter::compute_expr(ExprId e) {
  const ExprNode n = exprs_[e];  // a copy: questions about ranges move the nodes
  if (const auto known = divisors_.find(e); known != divisors_.end())
    return {resized(known->second.value, index_bits(e), e), 0};
  switch (n.op) {
    case ExprOp::const_int:
      if (is_index(n.type)) return {llvm::ConstantInt::getSigned(b_.getIntNTy(index_bits(e)), n.imm), 0};
      return {constant(n), 0};
    case ExprOp::const_float:
      return {constant(n), 0};
    case ExprOp::var:
      return emit_var(n, e);
    case ExprOp::load: {
      Emitted v = emit_load(e);
      return {is_index(n.type) ? resized(v.value, index_bits(e), e) : v.value, v.level};
    }
    case ExprOp::native_call:
      return emit_native_call(n, e);
    default:
      break;
  }
  const bool on_index = is_index(exprs_.type(n.a)) || is_index(n.type);
  const int arity = ir::expr_arity(n.op);
  if (arity == 1) {
    if (on_index) return emit_index_unary(n, e);
    Emitted a = emit_expr(n.a);
    return {ops_.unary(n.op, exprs_.type(n.a), n.type, a.value), a.level};
  }
  if (arity == 2) {
    if (on_index) return emit_index_binary(n, e);
    Emitted a = emit_expr(n.a), b = emit_expr(n.b);
    bool division = n.op == ExprOp::floordiv || n.op == ExprOp::floormod;
    bool non_negative = division && facts_.range(n.a).lo >= 0 && facts_.range(n.b).lo >= 0;
    return {ops_.binary(n.op, exprs_.type(n.a), n.type, a.value, b.value, non_negative),
            std::max(a.level, b.level)};
  }
  Emitted a = emit_expr(n.a), b = emit_expr(n.b), c = emit_expr(n.c);
  if (is_index(n.type)) {
    b.value = resized(b.value, index_bits(e), n.b);
    c.value = resized(c.value, index_bits(e), n.c);
  }
  return {ops_.ternary(n.op, n.type, a.value, b.value, c.value), std::max({a.level, b.level, c.level})};
}

GpuEmitter::Emitted GpuEmitter::emit_native_call(const ExprNode& n, ExprId e) {
  const ir::ExprPool::NativeCall call = exprs_.native_parts(e);
  const ir::NativeText* text = native_text_of(call);
  Emitted made;
  if (!text) {
    made = emit_expr(n.a);
  } else {
    std::vector<Value*> args;
    for (const ExprId arg : call.args) {
      const Emitted a = emit_expr(arg);
      args.push_back(is_index(exprs_.type(arg)) ? resized(a.value, 64, arg) : a.value);
      made.level = std::max(made.level, a.level);
    }
    made.value = emit_native(call, *text, std::move(args));
  }
  return {is_index(n.type) ? resized(made.value, index_bits(e), e) : made.value, made.level};
}

GpuEmitter::Emitted GpuEmitter::emit_var(const ExprNode& n, ExprId e) {
  const Bound& v = bound_[n.var().value];
  if (!v.value) {
    refuse("variable '" + program_.vars[n.var().value].name + "' is used outside its loop");
    llvm::Type* t = is_index(n.type) ? b_.getIntNTy(index_bits(e)) : held_type(context_, n.type);
    return {llvm::PoisonValue::get(t), 0};
  }
  return {is_index(n.type) ? resized(v.value, index_bits(e), e) : v.value, v.level};
}

GpuEmitter::Emitted GpuEmitter::emit_index_unary(const ExprNode& n, ExprId e) {
  Emitted a = emit_expr(n.a);
  DType from = exprs_.type(n.a), to = n.type;
  if (n.op == ExprOp::cast) {
    if (is_index(from) && a.value->getType()->isIntegerTy(32)) from = DType::i32;
    if (is_index(to) && ir::is_float(from))
      return {resized(ops_.unary(n.op, from, to, a.value), index_bits(e), e), a.level};
    if (is_index(to) && index_bits(e) == 32) to = DType::i32;
    return {ops_.unary(n.op, from, to, a.value), a.level};
  }
  if (n.op == ExprOp::bitcast) {  // all 64 bits count
    Value* bits = is_index(from) ? resized(a.value, 64, n.a) : a.value;
    Value* v = ops_.unary(n.op, from, to, bits);
    return {is_index(to) ? resized(v, index_bits(e), e) : v, a.level};
  }
  const bool modular = n.op == ExprOp::neg || n.op == ExprOp::bit_not;
  const bool of_all_bits = n.op == ExprOp::popcount || n.op == ExprOp::clz || n.op == ExprOp::ctz;
  unsigned bits = modular || (facts_.narrow(n.a) && !of_all_bits) ? index_bits(e) : 64;
  DType type = bits == 32 ? DType::i32 : DType::i64;
  Value* v = ops_.unary(n.op, type, type, resized(a.value, bits, n.a));
  return {resized(v, index_bits(e), e), a.level};
}

GpuEmitter::Emitted GpuEmitter::emit_index_binary(const ExprNode& n, ExprId e) {
  if (auto counter = rotating_counter(n)) return *counter;
  if (auto known = of_warp(n)) return *known;
  Emitted a = emit_expr(n.a), b = emit_expr(n.b);
  int level = std::max(a.level, b.level);
  auto* x = llvm::dyn_cast<llvm::ConstantInt>(a.value);
  auto* y = llvm::dyn_cast<llvm::ConstantInt>(b.value);
  if (x && y) {
    ir::ScalarValue v =
        ir::eval_binary(n.op, n.type, {DType::i64, x->getSExtValue(), 0}, {DType::i64, y->getSExtValue(), 0});
    if (!is_index(n.type)) return {b_.getInt1(v.i != 0), level};
    return {llvm::ConstantInt::getSigned(b_.getIntNTy(index_bits(e)), v.i), level};
  }
  return {index_operation(n, e, a.value, b.value), level};
}

// A wide divisor of a narrow value that is never negative may be cut to 31 bits and a sign: the quotient
// stays.
Value* GpuEmitter::divided_narrow(const ExprNode& n, ExprId e, Value* a, Value* b) {
  const Interval rb = facts_.range(n.b);
  const bool non_negative = rb.lo >= 0, non_zero = !rb.contains(0);
  Value* cut = b;
  if (rb.hi > INT32_MAX)
    cut = b_.CreateSelect(b_.CreateICmpSGT(cut, b_.getInt64(INT32_MAX)), b_.getInt64(INT32_MAX), cut);
  if (rb.lo < -INT32_MAX)
    cut = b_.CreateSelect(b_.CreateICmpSLT(cut, b_.getInt64(-INT32_MAX)), b_.getInt64(-INT32_MAX), cut);
  cut = b_.CreateTrunc(cut, b_.getInt32Ty());
  if (non_negative || n.op == ExprOp::floordiv)
    return resized(ops_.division(n.op, DType::i32, a, cut, non_negative, non_zero), index_bits(e), e);
  Value* q = ops_.division(ExprOp::floordiv, DType::i32, a, cut, false, non_zero);
  Value* r = b_.CreateSub(with_bits(b_, a, 64, true), b_.CreateMul(with_bits(b_, q, 64, false), b));
  if (!non_zero) r = b_.CreateSelect(b_.CreateICmpEQ(b, b_.getInt64(0)), b_.getInt64(0), r);
  return resized(r, index_bits(e), e);
}

// As thread::divide_by does. A divisor of more than 31 bits divides to nothing, whatever its low bits are.
Value* GpuEmitter::divided_by_reciprocal(const ExprNode& n, ExprId e, Value* a, Value* b) {
  Value* slot = divisors_.at(n.b).reciprocal;
  Value* product = b_.CreateMul(b_.CreateZExt(b_.CreateShl(a, b_.getInt32(1), "", true), b_.getInt64Ty()),
                                b_.CreateAnd(slot, b_.getInt64(UINT32_MAX)), "", true);
  Value* high = b_.CreateTrunc(b_.CreateLShr(product, b_.getInt64(32)), b_.getInt32Ty());
  Value* q = b_.CreateLShr(high, b_.CreateTrunc(b_.CreateLShr(slot, b_.getInt64(32)), b_.getInt32Ty()));
  if (n.op == ExprOp::floordiv) return with_bits(b_, q, index_bits(e), true);
  Value* whole = b_.CreateMul(q, b_.CreateTrunc(b, b_.getInt32Ty()));
  return with_bits(b_, b_.CreateSub(a, whole, "", true), index_bits(e), true);
}

Value* GpuEmitter::index_operation(const ExprNode& n, ExprId e, Value* a, Value* b) {
  if (is_modular(n.op)) return modular(n, e, a, b);
  const Interval ra = facts_.range(n.a), rb = facts_.range(n.b);
  const bool division = n.op == ExprOp::floordiv || n.op == ExprOp::floormod;
  if (division && ra.within({0, thread::kMaxDivided}) && divisors_.contains(n.b))
    return divided_by_reciprocal(n, e, a, b);
  if (division && ra.within({0, thread::kMaxDivided}) && !facts_.narrow(n.b))
    return divided_narrow(n, e, a, b);
  bool narrow = facts_.narrow(n.a) && facts_.narrow(n.b);
  if (is_index(n.type)) narrow = narrow && facts_.narrow(e);
  const bool shift = n.op == ExprOp::shl || n.op == ExprOp::shr;
  if (shift) narrow = narrow && rb.within({0, 31});
  if (n.op == ExprOp::mulhi) narrow = false;
  bool non_negative = ra.lo >= 0 && rb.lo >= 0;
  if (n.op == ExprOp::floormod && index_bits(e) == 32 && rb.is_point() && rb.lo > 0 &&
      (rb.lo & (rb.lo - 1)) == 0)  // a mask of low bits; 2^31 itself is no i32
    return b_.CreateAnd(resized(a, 32, n.a), b_.getInt32(static_cast<uint32_t>(rb.lo - 1)));
  unsigned bits = narrow ? 32 : 64;
  DType type = narrow ? DType::i32 : DType::i64;
  a = resized(a, bits, n.a);
  b = resized(b, bits, n.b);
  Value* v = nullptr;
  if (division)
    v = ops_.division(n.op, type, a, b, non_negative, !rb.contains(0));
  else if (shift && rb.within({0, static_cast<int64_t>(bits) - 1}))
    v = n.op == ExprOp::shl ? b_.CreateShl(a, b) : ra.lo >= 0 ? b_.CreateLShr(a, b) : b_.CreateAShr(a, b);
  else
    v = ops_.binary(n.op, type, is_index(n.type) ? type : n.type, a, b, non_negative);
  return is_index(n.type) ? resized(v, index_bits(e), e) : v;
}

Value* GpuEmitter::modular(const ExprNode& n, ExprId e, Value* a, Value* b) {
  unsigned bits = index_bits(e);
  const Interval ra = facts_.range(n.a), rb = facts_.range(n.b);
  const bool exact =
      bits == 32 && ra.within(kI32) && rb.within(kI32) && exact_range(n.op, ra, rb).within(kI32);
  const bool unsigned_too = exact && ra.lo >= 0 && rb.lo >= 0 && n.op != ExprOp::sub;
  a = resized(a, bits, n.a);
  b = resized(b, bits, n.b);
  switch (n.op) {
    case ExprOp::add:
      return b_.CreateAdd(a, b, "", unsigned_too, exact);
    case ExprOp::sub:
      return b_.CreateSub(a, b, "", false, exact);
    case ExprOp::mul:
      return b_.CreateMul(a, b, "", unsigned_too, exact);
    default: {
      DType type = bits == 32 ? DType::i32 : DType::i64;
      return ops_.binary(n.op, type, type, a, b);
    }
  }
}

}  // namespace tilegen::codegen
