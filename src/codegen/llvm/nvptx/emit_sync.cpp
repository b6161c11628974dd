// Barriers, votes, asynchronous copies, shuffles.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/llvm/nvptx/ptx_emitter.h"
#include "codegen/llvm/nvptx/word_access.h"
#include "support/checked.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

void PtxEmitter::emit_statement(const Stmt& s) {
  statement_ = static_cast<size_t>(&s - program_.stmts.data());
  if (!folding_[statement_].contained) GpuEmitter::emit_statement(s);
}

Value* PtxEmitter::any_lane(Value* condition) {
  return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_any_sync, {}, {b_.getInt32(~0u), condition});
}

Value* PtxEmitter::ballot(Value* condition) {
  return b_.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_ballot_sync, {}, {b_.getInt32(~0u), condition});
}

Value* PtxEmitter::matching(Value* value) {
  const bool wide = value->getType()->getIntegerBitWidth() > 32;
  Value* bits = b_.CreateZExt(value, wide ? b_.getInt64Ty() : b_.getInt32Ty());
  return b_.CreateIntrinsic(
      wide ? llvm::Intrinsic::nvvm_match_any_sync_i64 : llvm::Intrinsic::nvvm_match_any_sync_i32, {},
      {b_.getInt32(~0u), bits});
}

void PtxEmitter::emit_node(const Barrier& barrier) {
  auto number = [&](int64_t v) { return b_.getInt32(static_cast<uint32_t>(v)); };
  if (barrier.id == 0 && barrier.threads == 0 && !barrier.arrive_only) {
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
    return;
  }
  // LLVM passes the numbers of its intrinsic in registers, which makes ptxas reserve all barriers.
  const char* text = barrier.arrive_only ? "bar.arrive $0, $1;" : "bar.sync $0, $1;";
  int64_t threads =
      barrier.threads ? barrier.threads : ceil_div(program_.threads, int64_t{target_.warp}) * target_.warp;
  convergent(ptx_.instruction(b_.getVoidTy(), text, "n,n,~{memory}", {number(barrier.id), number(threads)}));
}

// LLVM's intrinsics cannot take a 32-bit shared and a 64-bit global address together.
void PtxEmitter::emit_node(const AsyncCopy& copy) {
  Condition c = condition(copy.predicate);
  Place to = place(copy.dst, copy.dst_index), from = place(copy.src, copy.src_index);
  std::string text = copy.bytes == 16 ? "cp.async.cg" : "cp.async.ca";
  std::string constraints = "r,n,l,n";
  Value* policy = cache_policy(b_, program_.memory(copy.src).loads);
  // ptxas (13.0, sm_90a) splits a shared address of a copy with a policy into a register and a uniform
  // register, and encodes the pair as an illegal instruction. A byte permutation that keeps every byte hides
  // the sum from it; ptxas drops the permutation itself.
  if (policy) text = "{ .reg .b32 to; prmt.b32 to, $0, 0, 0x3210; " + text;
  text += std::string(".shared.global") + (policy ? ".L2::cache_hint [to" : " [$0") + "+$1], [$2+$3], " +
          std::to_string(copy.bytes);
  Values operands = address(b_, to);
  for (Value* v : address(b_, from)) operands.push_back(v);
  Value* bytes = b_.getInt32(static_cast<uint32_t>(copy.bytes));
  if (c.value || c.never) {
    text += ", $4";
    constraints += ",r";
    operands.push_back(c.never ? b_.getInt32(0) : b_.CreateSelect(c.value, bytes, b_.getInt32(0)));
  }
  if (policy) {
    text += ", $" + std::to_string(operands.size());
    constraints += ",l";
    operands.push_back(policy);
  }
  text += policy ? "; }" : ";";
  ptx_.instruction(b_.getVoidTy(), text, constraints + ",~{memory}", operands);
}

void PtxEmitter::emit_node(const AsyncCommit&) {
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {}, {});
}

void PtxEmitter::emit_node(const AsyncWait& wait) {
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {},
                     {b_.getInt32(static_cast<uint32_t>(wait.pending))});
}

Value* PtxEmitter::shuffled(Shuffle::Mode mode, Value* bits, Value* lane) {
  const auto id = mode == Shuffle::Mode::butterfly ? llvm::Intrinsic::nvvm_shfl_sync_bfly_i32
                                                   : llvm::Intrinsic::nvvm_shfl_sync_idx_i32;
  return b_.CreateIntrinsic(id, {}, {b_.getInt32(0xffffffff), bits, lane, b_.getInt32(31)});
}

}  // namespace tilegen::codegen
