// Expressions: sharing, leaves, lane-zero values, masks. Operators are in operators.cpp.
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/host_emitter.h"
#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using llvm::Value;

Value* HostEmitter::splat(Value* v, int64_t lanes) {
  if (lanes <= 1 || v->getType()->isVectorTy()) return v;
  return b_.CreateVectorSplat(static_cast<unsigned>(lanes), v);
}

void HostEmitter::match_lanes(Value*& a, Value*& b) {
  int64_t lanes = std::max(lane_count(a), lane_count(b));
  a = splat(a, lanes);
  b = splat(b, lanes);
}

Value* HostEmitter::lane_zero(ExprId e) {
  if (!lane_var_.valid()) return value(e);
  bool outer = lane_zero_mode_;
  lane_zero_mode_ = true;
  Value* v = value(e);
  lane_zero_mode_ = outer;
  return v;
}

// Affine indices are a scalar plus a constant vector; only the rest needs vector arithmetic.
Value* HostEmitter::index_vector(ExprId e) {
  LaneForm form = lanes_.form(e);
  if (!form.affine) return splat(value(e), width_);
  std::vector<llvm::Constant*> steps;
  for (int64_t i = 0; i < width_; ++i)
    steps.push_back(b_.getInt64(static_cast<uint64_t>(i) * static_cast<uint64_t>(form.stride)));
  return b_.CreateAdd(splat(lane_zero(e), width_), llvm::ConstantVector::get(steps));
}

HostEmitter::Emitted HostEmitter::emit_expr(ExprId e) {
  // What the lane variable does not occur in is the same in both modes and shared; what occurs but does not
  // matter is taken at lane 0.
  const LaneForm form = lanes_.form(e);
  const bool outer = lane_zero_mode_;
  lane_zero_mode_ = form.of_lane && (outer || form.uniform());
  uint64_t key = uint64_t{e.value} * 2 + (lane_zero_mode_ ? 1 : 0);
  auto known = memo_.find(key);
  Emitted r = known != memo_.end() ? known->second : compute_expr(e);
  const bool computed = known == memo_.end();
  lane_zero_mode_ = outer;
  if (!computed) return r;
  remember(key, r);
  return r;
}

HostEmitter::Emitted HostEmitter::compute_expr(ExprId e) {
  const ExprNode& n = exprs_[e];
  switch (n.op) {
    case ExprOp::const_int:
    case ExprOp::const_float:
      return {constant(n), 0};
    case ExprOp::var:
      return emit_var(n);
    case ExprOp::load:
      return emit_load(e);
    case ExprOp::native_call:
      return emit_native_call(n, e);
    default:
      break;
  }
  // An affine value of the lane is cheaper as a scalar plus a constant vector than computed lane by lane.
  if (lane_var_.valid() && !lane_zero_mode_ && n.type == ir::DType::i64) {
    LaneForm form = lanes_.form(e);
    if (form.affine && form.stride != 0)
      return {index_vector(e), std::max(bound_[lane_var_.value].level, statement_level_)};
  }
  Emitted a = emit_expr(n.a);
  int arity = ir::expr_arity(n.op);
  if (arity == 1) return {ops_.unary(n.op, exprs_.type(n.a), n.type, a.value), a.level};
  Emitted b = emit_expr(n.b);
  if (arity == 2) {
    match_lanes(a.value, b.value);
    const bool division = n.op == ExprOp::floordiv || n.op == ExprOp::floormod;
    const bool non_negative = division && lanes_.non_negative(n.a) && lanes_.non_negative(n.b);
    return {ops_.binary(n.op, exprs_.type(n.a), n.type, a.value, b.value, non_negative),
            std::max(a.level, b.level)};
  }
  Emitted c = emit_expr(n.c);
  int level = std::max({a.level, b.level, c.level});
  int64_t lanes = lane_count(a.value);
  Value* x = splat(b.value, lanes);
  Value* y = splat(c.value, lanes);
  match_lanes(x, y);
  // One condition may choose between vectors.
  Value* first = n.op == ExprOp::select ? a.value : splat(a.value, lane_count(x));
  return {ops_.ternary(n.op, n.type, first, x, y), level};
}

// Native text is of one lane.
HostEmitter::Emitted HostEmitter::emit_native_call(const ExprNode& n, ExprId e) {
  const ir::ExprPool::NativeCall call = exprs_.native_parts(e);
  const ir::NativeText* text = native_text_of(call);
  if (!text) return emit_expr(n.a);
  Emitted made;
  std::vector<Value*> args;
  int64_t lanes = 1;
  for (const ExprId arg : call.args) {
    const Emitted a = emit_expr(arg);
    args.push_back(a.value);
    made.level = std::max(made.level, a.level);
    lanes = std::max(lanes, lane_count(a.value));
  }
  if (lanes == 1) {
    made.value = emit_native(call, *text, std::move(args));
    return made;
  }
  for (int64_t lane = 0; lane < lanes; ++lane) {
    std::vector<Value*> own = args;
    for (Value*& a : own)
      if (a->getType()->isVectorTy()) a = b_.CreateExtractElement(a, static_cast<uint64_t>(lane));
    Value* v = emit_native(call, *text, std::move(own));
    if (!made.value)
      made.value =
          llvm::PoisonValue::get(llvm::FixedVectorType::get(v->getType(), static_cast<unsigned>(lanes)));
    made.value = b_.CreateInsertElement(made.value, v, static_cast<uint64_t>(lane));
  }
  return made;
}

HostEmitter::Emitted HostEmitter::emit_var(const ExprNode& n) {
  const Bound& v = bound_[n.var().value];
  if (!v.value) {
    refuse("variable '" + program_.vars[n.var().value].name + "' is used outside its loop");
    return {llvm::PoisonValue::get(held_type(context_, n.type)), 0};
  }
  if (n.var() != lane_var_ || lane_zero_mode_) return {v.value, v.level};
  std::vector<llvm::Constant*> steps;
  for (int64_t i = 0; i < width_; ++i) steps.push_back(b_.getInt64(static_cast<uint64_t>(i)));
  return {b_.CreateAdd(splat(v.value, width_), llvm::ConstantVector::get(steps)), v.level};
}

// lane-affine comparisons with distance 1 become `lane < clamp(limit)` on bytes instead of 64-bit lanes.
Value* HostEmitter::emit_mask(ExprId predicate) {
  const ExprNode& n = exprs_[predicate];
  if (n.op == ExprOp::logical_and && !lanes_.form(predicate).uniform()) {
    Value* a = emit_mask(n.a);
    Value* b = emit_mask(n.b);
    return b_.CreateAnd(a, b);
  }
  if ((n.op == ExprOp::lt || n.op == ExprOp::le) && exprs_.type(n.a) == ir::DType::i64 && width_ <= 64) {
    LaneForm a = lanes_.form(n.a), b = lanes_.form(n.b);
    if (a.affine && b.affine && lanes_.exact(n.a) && lanes_.exact(n.b) && a.stride - b.stride == 1) {
      // a0 + lane < b0  <=>  lane < b0 - a0; the difference saturates, the clamp then hides by how much
      Value* room = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ssub_sat, lane_zero(n.b), lane_zero(n.a));
      if (n.op == ExprOp::le)
        room = b_.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, room, b_.getInt64(1));
      room = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, room, b_.getInt64(0));
      room =
          b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, room, b_.getInt64(static_cast<uint64_t>(width_)));
      std::vector<llvm::Constant*> lanes;
      for (int64_t i = 0; i < width_; ++i) lanes.push_back(b_.getInt8(static_cast<uint8_t>(i)));
      return b_.CreateICmpULT(llvm::ConstantVector::get(lanes),
                              splat(b_.CreateTrunc(room, b_.getInt8Ty()), width_));
    }
  }
  return splat(value(predicate), width_);
}

}  // namespace tilegen::codegen
