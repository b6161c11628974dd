// Warps with tasks of their own, and the index of the warp.
//
// Where warps part, the index of the warp comes from a shuffle: the assembler then knows that it is the same
// for the warp, keeps what is computed from it in uniform registers and does not prepare its branches for
// divergence.
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <bit>

#include "codegen/llvm/nvptx/ptx_emitter.h"
#include "support/checked.h"
#include "thread/warp_arrival.h"

namespace tilegen::codegen {

using ir::ExprId;
using ir::ExprNode;
using ir::ExprOp;
using llvm::Value;
using namespace thread;

namespace {

bool parts_warps(const Stmt& s) {
  return std::holds_alternative<Roles>(s.node) || std::holds_alternative<WarpgroupMma>(s.node) ||
         std::holds_alternative<OneThread>(s.node);
}

}  // namespace

void PtxEmitter::bind_warp() {
  if (!program_.thread_var.valid() || !std::any_of(program_.stmts.begin(), program_.stmts.end(), parts_warps))
    return;
  Value* own = b_.CreateLShr(
      bound_[program_.thread_var.value].value,
      b_.getInt32(static_cast<uint32_t>(std::countr_zero(static_cast<unsigned>(target_.warp)))));
  llvm::CallInst* shared = b_.CreateIntrinsic(
      llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {},
      {b_.getInt32(0xffffffff), own, b_.getInt32(0), b_.getInt32(static_cast<uint32_t>(target_.warp - 1))});
  const auto warps = static_cast<uint64_t>(ceil_div(program_.threads, int64_t{target_.warp}));
  shared->setMetadata(llvm::LLVMContext::MD_range,
                      llvm::MDBuilder(context_).createRange(llvm::APInt(32, 0), llvm::APInt(32, warps)));
  warp_ = convergent(shared);
}

// What an expression of the thread index says about warps: thread // 32w, thread < 32w, 32w <= thread.
std::optional<PtxEmitter::Emitted> PtxEmitter::of_warp(const ExprNode& n) {
  if (!warp_) return std::nullopt;
  auto is_thread = [&](ExprId e) {
    return exprs_[e].op == ExprOp::var && exprs_[e].var() == program_.thread_var;
  };
  auto warps = [&](ExprId e) -> std::optional<int64_t> {
    int64_t threads = 0;
    if (!exprs_.is_const_int(e, &threads) || threads <= 0 || threads % target_.warp != 0 ||
        threads > INT32_MAX)
      return std::nullopt;
    return threads / target_.warp;
  };
  auto number = [&](int64_t v) { return b_.getInt32(static_cast<uint32_t>(v)); };
  const int level = bound_[program_.thread_var.value].level;
  if (n.op == ExprOp::floordiv && is_thread(n.a)) {
    auto w = warps(n.b);
    if (!w) return std::nullopt;
    const auto divisor = static_cast<uint64_t>(*w);
    if (std::has_single_bit(divisor))
      return Emitted{b_.CreateLShr(warp_, number(std::countr_zero(divisor))), level};
    return Emitted{b_.CreateUDiv(warp_, number(*w)), level};
  }
  if (n.op == ExprOp::lt && is_thread(n.a))
    if (auto w = warps(n.b)) return Emitted{b_.CreateICmpULT(warp_, number(*w)), level};
  if (n.op == ExprOp::le && is_thread(n.b))
    if (auto w = warps(n.a)) return Emitted{b_.CreateICmpUGE(warp_, number(*w)), level};
  return std::nullopt;
}

// Registers of a thread at launch follow from the block's size (maxntid, minnctapersm).
void PtxEmitter::emit_register_budget(int registers) {
  const int64_t at_launch =
      target_.registers_at_launch(program_.threads * std::max<int64_t>(program_.min_blocks, 1));
  if (registers == 0 || registers == at_launch) return;
  auto id = registers > at_launch ? llvm::Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32
                                  : llvm::Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32;
  convergent(b_.CreateIntrinsic(id, {}, {b_.getInt32(static_cast<uint32_t>(registers))}));
}

// They end the kernel: nothing is carried out of a role.
void PtxEmitter::emit_node(const Roles& roles) {
  if (!warp_) return refuse("roles in a block of one thread");
  const RegisterFile::State outside = registers_.state();
  llvm::BasicBlock* end = llvm::BasicBlock::Create(context_, "end");
  for (size_t i = 0; i < roles.roles.size() && !refused(); ++i) {
    const Role& role = roles.roles[i];
    llvm::BasicBlock* body = llvm::BasicBlock::Create(context_, role.name, function_);
    llvm::BasicBlock* others = nullptr;
    if (i + 1 < roles.roles.size()) {
      others = llvm::BasicBlock::Create(context_, "others", function_);
      const int64_t end = (role.first_thread + role.threads) / target_.warp;
      b_.CreateCondBr(b_.CreateICmpULT(warp_, b_.getInt32(static_cast<uint32_t>(end))), body, others);
    } else {
      b_.CreateBr(body);
    }
    b_.SetInsertPoint(body);
    registers_.restore(outside);
    emit_register_budget(role.registers);
    open_scope(true);
    emit_body(role.body);
    close_scope();
    b_.CreateBr(end);
    if (others) b_.SetInsertPoint(others);
  }
  end->insertInto(function_);
  b_.SetInsertPoint(end);
  registers_.restore(outside);
}

void PtxEmitter::emit_node(const OneThread& one) {
  // The choice itself orders no memory.
  if (warp_arrival(program_, one)) ptx_.effect("bar.warp.sync 0xffffffff;");
  Value* elected = nullptr;
  if (target_.tensor_copy) {
    elected = ptx_.effect(b_.getInt1Ty(), "elect.sync _|$0, 0xffffffff;", "=b", {});
  } else {
    Value* lane = b_.CreateAnd(bound_[program_.thread_var.value].value,
                               b_.getInt32(static_cast<uint32_t>(target_.warp - 1)));
    elected = b_.CreateICmpEQ(lane, b_.getInt32(0));
  }
  emit_sides(elected, one.body, {});
}

}  // namespace tilegen::codegen
