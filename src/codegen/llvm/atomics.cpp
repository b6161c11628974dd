#include "codegen/llvm/atomics.h"

#include <functional>
#include <optional>

#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using ir::AtomicKind;
using ir::DType;
using llvm::Value;

namespace {

using Instruction = llvm::AtomicRMWInst::BinOp;

// Minima and maxima of floats are loops: of NaN and of 16 bits the instructions have rules of their own.
std::optional<Instruction> instruction(AtomicKind kind, DType type) {
  const bool floating = ir::is_float(type);
  if (floating && (kind != AtomicKind::add || ir::dtype_bits(type) < 32)) return std::nullopt;
  switch (kind) {
    case AtomicKind::add:
      return floating ? Instruction::FAdd : Instruction::Add;
    case AtomicKind::min:
      return Instruction::Min;
    case AtomicKind::max:
      return Instruction::Max;
    case AtomicKind::bit_and:
      return Instruction::And;
    case AtomicKind::bit_or:
      return Instruction::Or;
    case AtomicKind::bit_xor:
      return Instruction::Xor;
  }
  return std::nullopt;
}

void where(llvm::IRBuilder<>& b, Value* condition, const std::function<void()>& work) {
  if (!condition) return work();
  llvm::Function* function = b.GetInsertBlock()->getParent();
  auto* inside = llvm::BasicBlock::Create(b.getContext(), "atomic", function);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "after", function);
  b.CreateCondBr(condition, inside, after);
  b.SetInsertPoint(inside);
  work();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

// Blocks of one device take part; NVPTX's atomic operations mean that by themselves.
llvm::SyncScope::ID scope_of(llvm::IRBuilder<>& b, const MachineFeatures& f) {
  return f.amdgpu ? b.getContext().getOrInsertSyncScopeID("agent")
                  : llvm::SyncScope::ID(llvm::SyncScope::System);
}

void swap_loop(llvm::IRBuilder<>& b, Operators& ops, const MachineFeatures& f, AtomicKind kind, DType type,
               Value* pointer, Value* held) {
  llvm::LLVMContext& c = b.getContext();
  llvm::Function* function = b.GetInsertBlock()->getParent();
  llvm::Type* stored = storage_type(c, type);
  llvm::Type* word = b.getIntNTy(static_cast<unsigned>(ir::dtype_bits(type)));
  const llvm::Align align(static_cast<uint64_t>(ir::dtype_bytes(type)));
  constexpr auto kRelaxed = llvm::AtomicOrdering::Monotonic;
  llvm::LoadInst* first = b.CreateAlignedLoad(word, pointer, align);
  first->setAtomic(kRelaxed, scope_of(b, f));
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* again = llvm::BasicBlock::Create(c, "swap", function);
  auto* done = llvm::BasicBlock::Create(c, "swapped", function);
  b.CreateBr(again);
  b.SetInsertPoint(again);
  llvm::PHINode* old = b.CreatePHI(word, 2);
  old->addIncoming(first, before);
  Value* current = from_storage(b, type, b.CreateBitCast(old, stored));
  Value* next = ops.binary(ir::atomic_operation(kind), type, type, current, held);
  Value* bits = b.CreateBitCast(to_storage(b, type, next), word);
  Value* swapped = b.CreateAtomicCmpXchg(pointer, old, bits, align, kRelaxed, kRelaxed, scope_of(b, f));
  old->addIncoming(b.CreateExtractValue(swapped, 0), b.GetInsertBlock());
  b.CreateCondBr(b.CreateExtractValue(swapped, 1), done, again);
  b.SetInsertPoint(done);
}

}  // namespace

void emit_atomic(llvm::IRBuilder<>& b, Operators& ops, const MachineFeatures& f, AtomicKind kind, DType type,
                 Value* pointer, Value* held, Value* condition) {
  where(b, condition, [&] {
    const auto op = instruction(kind, type);
    if (!op) return swap_loop(b, ops, f, kind, type, pointer, held);
    const llvm::Align align(static_cast<uint64_t>(ir::dtype_bytes(type)));
    b.CreateAtomicRMW(*op, pointer, to_storage(b, type, held), align, llvm::AtomicOrdering::Monotonic,
                      scope_of(b, f));
  });
}

}  // namespace tilegen::codegen
