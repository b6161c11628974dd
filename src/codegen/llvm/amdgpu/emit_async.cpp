// Words that go from tensors to shared memory past the registers (global_load_lds, or buffer_load_dword with
// lds), a lane's beside the next lane's, and the waits for them.
//
// LLVM 19.1.7 has an intrinsic for the instruction, and three faults with it: its recogniser of hazards looks
// its data up in a table, at index -1, and crashes, in the scheduler behind register allocation and behind
// that; each read of shared memory waits for all that are under way, so none would be ahead; and where a
// release fence and a barrier follow the wait comes behind them. So the instruction is inline assembly, which
// LLVM does not look into, and the waits are set here, in front of barriers. What LLVM waits for itself it
// waits for no later: the counter goes down in the order of issue.
//
// A wait names how many of the newest instructions may be under way. A thread counts those that its wave has
// issued since a commit, as groups at a loop's end are empty; the count is the same for the wave, and LLVM
// keeps it in scalar registers.
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsAMDGPU.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include "codegen/llvm/amdgpu/amd_emitter.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

namespace {

constexpr int64_t kMostCounted = 63;  // by the memory counter

// "S_WAITCNT": the counter's bits stand apart; of the two others none is waited for.
constexpr uint32_t wait_for_loads(int64_t left) {
  const auto n = static_cast<uint32_t>(left);
  return (n & 15) | (n >> 4) << 14 | 7 << 4 | 15 << 8;
}

// Groups that a wait leaves under way, and instructions of the largest group.
class Groups {
 public:
  explicit Groups(const ThreadProgram& p) : p_(p) { walk(p.body); }
  int64_t kept = 0, largest = 0;
  bool any = false;

 private:
  void walk(const Block& body) {
    for (StmtId id : body) {
      const StmtNode& node = p_.stmts[id.value].node;
      if (std::holds_alternative<AsyncCopy>(node)) {
        any = true;
        open_ += times_;
      } else if (std::holds_alternative<AsyncCommit>(node)) {
        largest = std::max(largest, open_);
        open_ = 0;
      } else if (const auto* wait = std::get_if<AsyncWait>(&node)) {
        kept = std::max(kept, wait->pending);
      } else if (const auto* branch = std::get_if<Branch>(&node)) {
        const int64_t before = open_;
        walk(branch->then_body);
        const int64_t then = std::exchange(open_, before);
        walk(branch->else_body);
        open_ = std::max(open_, then);
      } else if (const auto* loop = std::get_if<Loop>(&node)) {
        int64_t extent = 1;
        if (!commits(loop->body)) p_.exprs.is_const_int(loop->extent, &extent);
        const int64_t around = times_;
        times_ = std::min(times_ * std::max<int64_t>(extent, 1), kMostCounted);
        walk(loop->body);
        times_ = around;
      } else {
        for (const Block* inner : blocks_inside(node)) walk(*inner);
      }
    }
  }

  // Each of its iterations ends a group then.
  bool commits(const Block& body) const {
    return std::any_of(body.begin(), body.end(), [&](StmtId id) {
      const StmtNode& node = p_.stmts[id.value].node;
      const auto inside = blocks_inside(node);
      return std::holds_alternative<AsyncCommit>(node) ||
             std::any_of(inside.begin(), inside.end(), [&](const Block* b) { return commits(*b); });
    });
  }

  const ThreadProgram& p_;
  int64_t open_ = 0, times_ = 1;
};

}  // namespace

void AmdEmitter::begin_body() {
  bind_tensor_bytes();
  const Groups groups(program_);
  if (!groups.any) return;
  largest_group_ = groups.largest;
  for (int64_t i = 0; i <= groups.kept; ++i) {
    issued_.push_back(b_.CreateAlloca(b_.getInt32Ty()));
    b_.CreateStore(b_.getInt32(0), issued_.back());
  }
}

void AmdEmitter::emit_node(const AsyncCopy& copy) {
  Condition c = target_.buffer_async_copies ? condition(copy.predicate, copy.src, copy.src_index)
                                            : condition(copy.predicate);
  Value* to = pointer(b_, place(copy.dst, copy.dst_index));
  const Place source = place(copy.src, copy.src_index);
  // M0 is where lane 0 would write, which may be none of those that run.
  Value* before = b_.CreateMul(own_lane(), b_.getInt32(static_cast<uint32_t>(copy.bytes)));
  Value* first = b_.CreateSub(b_.CreatePtrToInt(to, b_.getInt32Ty()), before);
  first = b_.CreateIntrinsic(llvm::Intrinsic::amdgcn_readfirstlane, {b_.getInt32Ty()}, {first});
  const char *text = "s_nop 0\n\tglobal_load_lds_dword $1, off", *operands = "{m0},v,~{memory}";
  std::vector<Value*> values = {first};
  if (target_.buffer_async_copies) {
    if (!source.base) return refuse("tensor '" + program_.memory(copy.src).name + "' has no known size");
    if (c.never) c.value = b_.getFalse();
    text = "s_nop 0\n\tbuffer_load_dword $1, $2, 0 offen lds", operands = "{m0},v,s,~{memory}";
    values.insert(values.end(),
                  {buffer_offset(source, c.value), words_of_buffer(source.base, program_.memory(copy.src))});
  } else {
    Value* from = c.never ? zeros() : pointer(b_, source);
    values.push_back(c.value ? b_.CreateSelect(c.value, from, zeros()) : from);
  }
  std::vector<llvm::Type*> types;
  for (Value* v : values) types.push_back(v->getType());
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), types, false);
  b_.CreateCall(llvm::InlineAsm::get(type, text, operands, /*hasSideEffects=*/true), values)->setConvergent();
  Value* count = issued_.front();
  b_.CreateStore(b_.CreateAdd(b_.CreateLoad(b_.getInt32Ty(), count), b_.getInt32(1)), count);
}

void AmdEmitter::emit_node(const AsyncCommit&) {
  if (issued_.empty()) return;
  for (size_t i = issued_.size() - 1; i > 0; --i)
    b_.CreateStore(b_.CreateLoad(b_.getInt32Ty(), issued_[i - 1]), issued_[i]);
  b_.CreateStore(b_.getInt32(0), issued_.front());
}

void AmdEmitter::emit_node(const AsyncWait& wait) {
  const auto wait_until = [&](int64_t left) {
    b_.CreateIntrinsic(llvm::Intrinsic::amdgcn_s_waitcnt, {}, {b_.getInt32(wait_for_loads(left))});
  };
  const int64_t all = std::min(wait.pending * largest_group_, kMostCounted);
  if (all == 0) return wait_until(0);
  // Groups that are as large as they get stay under way; else none does.
  Value* newer = b_.CreateLoad(b_.getInt32Ty(), issued_.front());
  for (int64_t i = 1; i <= wait.pending; ++i)
    newer = b_.CreateAdd(newer, b_.CreateLoad(b_.getInt32Ty(), issued_[static_cast<size_t>(i)]));
  const auto block = [&](const char* name) { return llvm::BasicBlock::Create(context_, name, function_); };
  llvm::BasicBlock *some = block("groups.kept"), *none = block("groups.awaited"), *after = block("awaited");
  b_.CreateCondBr(b_.CreateICmpUGE(newer, b_.getInt32(static_cast<uint32_t>(all))), some, none);
  for (llvm::BasicBlock* way : {some, none}) {
    b_.SetInsertPoint(way);
    wait_until(way == some ? all : 0);
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

void counts_to_registers(llvm::Module& module) {
  for (llvm::Function& f : module) {
    std::vector<llvm::AllocaInst*> counts;
    for (llvm::Instruction& i : llvm::instructions(f))
      if (auto* count = llvm::dyn_cast<llvm::AllocaInst>(&i)) counts.push_back(count);
    if (counts.empty()) continue;
    llvm::DominatorTree tree(f);
    llvm::PromoteMemToReg(counts, tree);
  }
}

}  // namespace tilegen::codegen
