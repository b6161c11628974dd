// Transaction barriers: made ready before the body, arrived at, waited for.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "codegen/llvm/nvptx/ptx_emitter.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

// One thread sets up the barriers, for all threads and engines, and has the tensor maps fetched.
void PtxEmitter::initialise_block() {
  if (program_.barriers.empty() && maps_.empty()) return;
  llvm::BasicBlock* next = nullptr;
  if (program_.thread_var.valid()) {
    llvm::BasicBlock* first = llvm::BasicBlock::Create(context_, "first", function_);
    next = llvm::BasicBlock::Create(context_, "ready", function_);
    Value* thread = bound_[program_.thread_var.value].value;
    b_.CreateCondBr(b_.CreateICmpEQ(thread, b_.getInt32(0)), first, next);
    b_.SetInsertPoint(first);
  }
  // First: their way is the longest.
  for (Value* map : maps_) ptx_.effect(b_.getVoidTy(), "prefetch.tensormap [$0];", "l,~{memory}", {map});
  std::string text;
  for (const TransactionBarriers& barriers : program_.barriers)
    for (int64_t i = 0; i < barriers.count; ++i)
      text += "mbarrier.init.shared::cta.b64 [$0+" +
              std::to_string(barriers.arena_offset + target_.transaction_barrier_bytes * i) + "], " +
              std::to_string(barriers.arrivals) + ";\n";
  if (target_.tensor_copy) text += text.empty() ? "" : "fence.mbarrier_init.release.cluster;";
  if (!text.empty()) ptx_.effect(b_.getVoidTy(), text, "r,~{memory}", {shared_});
  if (next) {
    b_.CreateBr(next);
    b_.SetInsertPoint(next);
  }
  if (program_.cluster > 1)
    ptx_.effect("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;");
  else if (!text.empty() && next)
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
}

Place PtxEmitter::barrier_place(int barriers, ir::ExprId index) {
  const arith::Affine form = facts_.affine(index);  // a copy: emitting asks for further ones
  return shared_place(form, target_.transaction_barrier_bytes,
                      program_.barriers[static_cast<size_t>(barriers)].arena_offset);
}

void PtxEmitter::emit_node(const TransactionArrive& arrive) {
  Values operands = address(b_, barrier_place(arrive.barriers, arrive.index));
  if (arrive.block.valid()) {
    operands.push_back(resized(value(arrive.block), 32, arrive.block));
    // What the arriving threads did with the slot is over: a release to the cluster would wait for all their
    // writes.
    ptx_.effect(b_.getVoidTy(),
                "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, $0, $2;\n"
                "mbarrier.arrive.shared::cluster.b64 _, [there+$1];\n}",
                "r,n,r,~{memory}", operands);
    return;
  }
  if (arrive.copies) {
    ptx_.effect(b_.getVoidTy(), "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0+$1];", "r,n,~{memory}",
                operands);
    return;
  }
  if (arrive.bytes == 0) {
    ptx_.effect(b_.getVoidTy(), "mbarrier.arrive.shared::cta.b64 _, [$0+$1];", "r,n,~{memory}", operands);
    return;
  }
  operands.push_back(b_.getInt32(static_cast<uint32_t>(arrive.bytes)));
  ptx_.effect(b_.getVoidTy(), "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0+$1], $2;", "r,n,n,~{memory}",
              operands);
}

// The instruction sleeps in hardware for a while; it returns when the phase is over or its patience is. It
// came with the copy engine: before it a wait asks again and again.
void PtxEmitter::emit_node(const TransactionWait& wait) {
  Value* parity = resized(value(wait.parity), 32, wait.parity);
  Values operands = address(b_, barrier_place(wait.barriers, wait.index));
  operands.push_back(parity);
  // Operands stand before the branch: others use them, too.
  llvm::BasicBlock* over = nullptr;
  if (wait.unless.valid()) {
    Value* tested = value(wait.unless);
    llvm::BasicBlock* waits = llvm::BasicBlock::Create(context_, "waits", function_);
    over = llvm::BasicBlock::Create(context_, "over", function_);
    b_.CreateCondBr(tested, over, waits);
    b_.SetInsertPoint(waits);
  }
  const std::string ask = target_.tensor_copy ? "try_wait" : "test_wait";
  ptx_.effect(b_.getVoidTy(),
              "{\n.reg .pred over;\nagain:\n"
              "mbarrier." +
                  ask +
                  ".parity.shared::cta.b64 over, [$0+$1], $2;\n"
                  "@over bra done;\nbra again;\ndone:\n}",
              "r,n,r,~{memory}", operands);
  if (over) {
    b_.CreateBr(over);
    b_.SetInsertPoint(over);
  }
}

void PtxEmitter::emit_node(const TransactionTest& test) {
  Value* parity = resized(value(test.parity), 32, test.parity);
  Values operands = address(b_, barrier_place(test.barriers, test.index));
  operands.push_back(parity);
  Value* yes =
      ptx_.effect(b_.getInt32Ty(),
                  "{\n.reg .pred over;\nmbarrier.test_wait.parity.shared::cta.b64 over, [$1+$2], $3;\n"
                  "selp.b32 $0, 1, 0, over;\n}",
                  "=r,r,n,r,~{memory}", operands);
  Store store;
  store.memory = test.dst;
  store_element(store, test.dst_index, yes, {});
}

}  // namespace tilegen::codegen
