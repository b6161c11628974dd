// Statements: loops, branches, stores, lane reductions, prefetches.
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/host_emitter.h"
#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

void HostEmitter::emit_statement(const Stmt& s) {
  if (std::holds_alternative<Barrier>(s.node)) return;  // one thread meets itself
  if (auto* store = std::get_if<Store>(&s.node)) return emit_store(*store);
  if (auto* reduce = std::get_if<LaneReduce>(&s.node)) return emit_lane_reduce(*reduce);
  if (auto* mma = std::get_if<HostMma>(&s.node)) return emit_mma(*mma);
  if (auto* prefetch = std::get_if<Prefetch>(&s.node)) return emit_prefetch(*prefetch);
  refuse("the program holds statements of GPU blocks");
}

void HostEmitter::emit_serial_loop(const Loop& loop) {
  Value* extent = nullptr;
  in_statement([&] { extent = value(loop.extent); });
  // Tiles have few elements: what counts further, or to what a launch says, is a loop over tiles.
  constexpr int64_t kMayBeLong = 1 << 16;
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(extent);
  Value* condition = nullptr;
  const auto ask = [&] {
    if (loop.condition.valid()) in_statement([&] { condition = value(loop.condition); });
  };
  ask();
  CountedLoop l = begin_counted_loop(extent, program_.vars[loop.var.value].name.c_str(), condition);
  if (!known || known->getSExtValue() > kMayBeLong) emit_stop_check();
  open_scope(true);
  bind(loop.var, l.index);
  emit_body(loop.body);
  close_scope();
  ask();
  end_counted_loop(l, condition);
}

void HostEmitter::emit_vector_loop(const Loop& loop) {
  int64_t extent = 0;
  exprs_.is_const_int(loop.extent, &extent);
  int64_t whole = extent / kMaxLanes, rest = extent % kMaxLanes;
  if (whole == 1 && rest == 0) whole = 0, rest = extent;
  if (whole > 0) {
    CountedLoop l = begin_counted_loop(b_.getInt64(whole), "lanes");
    open_scope(true);
    emit_lanes(loop, b_.CreateMul(l.index, b_.getInt64(kMaxLanes)), kMaxLanes, kMaxLanes);
    close_scope();
    end_counted_loop(l);
  }
  if (rest > 0) emit_lanes(loop, b_.getInt64(whole * kMaxLanes), rest, whole * kMaxLanes);
}

void HostEmitter::emit_lanes(const Loop& loop, Value* base, int64_t width, int64_t base_divisor) {
  if (lane_var_.valid()) return refuse("vectorized loops do not nest");
  if (width == 1) {  // what is left of a very wide loop
    open_scope(false);
    bind(loop.var, base);
    emit_body(loop.body);
    return close_scope();
  }
  lane_var_ = loop.var;
  width_ = width;
  lanes_.enter(loop.var, width, base_divisor);
  open_scope(false);
  bind(loop.var, base);
  emit_versions(loop.body);
  close_scope();
  lanes_.leave();
  lane_var_ = ir::VarId();
  width_ = 1;
}

void HostEmitter::emit_branch(const Branch& branch) {
  Value* condition = nullptr;
  in_statement([&] { condition = value(branch.condition); });
  emit_either(
      condition, [&] { emit_body(branch.then_body); }, [&] { emit_body(branch.else_body); });
}

void HostEmitter::emit_either(Value* condition, const std::function<void()>& then,
                              const std::function<void()>& otherwise) {
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition))
    return known->isOne() ? then() : otherwise();
  llvm::BasicBlock* yes = llvm::BasicBlock::Create(context_, "then", function_);
  llvm::BasicBlock* no = llvm::BasicBlock::Create(context_, "else", function_);
  llvm::BasicBlock* next = llvm::BasicBlock::Create(context_, "next", function_);
  b_.CreateCondBr(condition, yes, no);
  auto side = [&](llvm::BasicBlock* block, const std::function<void()>& body) {
    b_.SetInsertPoint(block);
    open_scope(true);
    body();
    close_scope();
    b_.CreateBr(next);
  };
  side(yes, then);
  side(no, otherwise);
  b_.SetInsertPoint(next);
}

void HostEmitter::emit_prefetch(const Prefetch& prefetch) {
  Value* pointer = element_pointer(prefetch.memory, value(prefetch.index));
  b_.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {pointer->getType()},
      {pointer, b_.getInt32(0), b_.getInt32(std::clamp(prefetch.locality, 0, 3)), b_.getInt32(1)});
}

namespace {

Value* combine(Builder& b, const MachineFeatures& f, Combine how, ir::DType t, Value* x, Value* y) {
  bool is_signed = ir::dtype_kind(t) == ir::DTypeKind::signed_int;
  if (ir::is_float(t)) {
    if (how == Combine::sum) return b.CreateFAdd(x, y);
    if (how == Combine::product) return b.CreateFMul(x, y);
    return how == Combine::max ? float_max(b, f, x, y) : float_min(b, f, x, y);
  }
  if (how == Combine::sum) return b.CreateAdd(x, y);
  if (how == Combine::product) return b.CreateMul(x, y);
  if (how == Combine::bit_and) return b.CreateAnd(x, y);
  if (how == Combine::bit_or) return b.CreateOr(x, y);
  if (how == Combine::bit_xor) return b.CreateXor(x, y);
  using namespace llvm::Intrinsic;
  auto id = how == Combine::max ? (is_signed ? smax : umax) : (is_signed ? smin : umin);
  return b.CreateBinaryIntrinsic(id, x, y);
}

// Folds the upper half onto the lower until one lane is left: a tree, so sums are as accurate as pairwise
// ones.
Value* reduce_lanes(Builder& b, const MachineFeatures& f, Combine how, ir::DType t, Value* v) {
  auto part = [&](int64_t from, int64_t count) -> Value* {
    if (count == 1) return b.CreateExtractElement(v, static_cast<uint64_t>(from));
    std::vector<int> pick;
    for (int64_t i = 0; i < count; ++i) pick.push_back(static_cast<int>(from + i));
    return b.CreateShuffleVector(v, pick);
  };
  Value* odd = nullptr;
  for (int64_t lanes = lane_count(v); lanes > 1; lanes /= 2) {
    if (lanes % 2) {
      Value* last = part(lanes - 1, 1);
      odd = odd ? combine(b, f, how, t, odd, last) : last;
    }
    v = combine(b, f, how, t, part(0, lanes / 2), part(lanes / 2, lanes / 2));
  }
  return odd ? combine(b, f, how, t, v, odd) : v;
}

}  // namespace

// f16 and bf16 are combined in f32 and rounded once at the end: the order, hence where roundings fall, is
// ours.
void HostEmitter::emit_lane_reduce(const LaneReduce& r) {
  const Memory& src = program_.memory(r.src);
  const Memory& dst = program_.memory(r.dst);
  if (src.type != dst.type) return refuse("a lane reduction between different types");
  if (ir::is_bool(src.type) || ir::is_storage_only(src.type))
    return refuse(std::string("a lane reduction of ") + ir::dtype_name(src.type));
  ir::DType t = src.type;
  Place from = place(r.src, r.src_index);
  int64_t piece = std::min<int64_t>(r.width, kMaxLanes);
  Value* total = nullptr;
  Value* scalar = nullptr;
  for (int64_t at = 0; at < r.width; at += piece) {
    int64_t lanes = std::min(piece, r.width - at);
    Place p = from;
    if (at > 0) {
      p.pointer = b_.CreateConstGEP1_64(storage_type(context_, t), from.pointer, at);
      p.align = llvm::commonAlignment(from.align, at * ir::dtype_bytes(t));
    }
    Value* v = from_storage(b_, t, load_contiguous(p, r.src, lanes, nullptr));
    if (lanes == piece)
      total = total ? combine(b_, features_, r.combine, t, total, v) : v;
    else
      scalar = lanes > 1 ? reduce_lanes(b_, features_, r.combine, t, v) : v;
  }
  Value* result = piece > 1 ? reduce_lanes(b_, features_, r.combine, t, total) : total;
  if (scalar) result = combine(b_, features_, r.combine, t, result, scalar);
  Place to = place(r.dst, r.dst_index);
  if (r.accumulate) {
    Value* old = from_storage(b_, t, load_scalar(to, r.dst, nullptr));
    result = combine(b_, features_, r.combine, t, old, result);
  }
  store_scalar(to, r.dst, to_storage(b_, t, round_held(b_, features_, t, result)), nullptr);
}

}  // namespace tilegen::codegen
