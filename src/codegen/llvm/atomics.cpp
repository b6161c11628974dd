#include "codegen/llvm/atomics.h"

#include <llvm/IR/InlineAsm.h>

#include <functional>
#include <optional>

#include "codegen/llvm/gpu/gpu_emitter.h"
#include "codegen/llvm/types.h"
#include "ir/print.h"

namespace tilegen::codegen {

using ir::AtomicKind;
using ir::DType;
using llvm::Value;

namespace {

using Instruction = llvm::AtomicRMWInst::BinOp;

// Minima and maxima of floats are loops: of NaN the instructions have rules of their own. So are all of fewer
// than 32 bits, but for integers on hosts and sums of floats where the machine has them.
std::optional<Instruction> instruction(const MachineFeatures& f, AtomicKind kind, DType type,
                                       bool sums_narrow) {
  const bool floating = ir::is_float(type);
  const bool is_signed = ir::dtype_kind(type) == ir::DTypeKind::signed_int;
  if (ir::dtype_bits(type) < 32 && (floating || f.nvptx || f.amdgpu) &&
      !(kind == AtomicKind::add && sums_narrow))
    return std::nullopt;
  if (floating && kind != AtomicKind::exchange && kind != AtomicKind::add) return std::nullopt;
  switch (kind) {
    case AtomicKind::compare_exchange:
    case AtomicKind::append:
      return std::nullopt;
    case AtomicKind::exchange:
      return Instruction::Xchg;
    case AtomicKind::add:
      return floating ? Instruction::FAdd : Instruction::Add;
    case AtomicKind::min:
      return is_signed ? Instruction::Min : Instruction::UMin;
    case AtomicKind::max:
      return is_signed ? Instruction::Max : Instruction::UMax;
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

// Among the threads that share the memory: of the block, of the device. LLVM 19 makes a fence of the whole
// system of every one for NVPTX.
void fence(llvm::IRBuilder<>& b, const MachineFeatures& f, llvm::AtomicOrdering ordering, Value* pointer) {
  const bool shared = pointer->getType()->getPointerAddressSpace() == kSharedSpace;
  if (!f.nvptx) {
    const bool in_block = shared && f.amdgpu;
    b.CreateFence(ordering, in_block ? b.getContext().getOrInsertSyncScopeID("workgroup") : scope_of(b, f));
    return;
  }
  auto* type = llvm::FunctionType::get(b.getVoidTy(), false);
  const char* text = shared ? "fence.acq_rel.cta;" : "fence.acq_rel.gpu;";
  b.CreateCall(type, llvm::InlineAsm::get(type, text, "~{memory}", true));
}

// The word that is swapped, and how the element lies in it.
struct Word {
  llvm::IntegerType* type = nullptr;
  Value* pointer = nullptr;
  Value* shift = nullptr;  // null: the element is the word
};

// GPUs swap words of 32 bits and more: that around the element, which lies in the element's memory wherever
// that begins and ends at whole words, and in its page anyhow. LLVM 19 makes two loops of narrower ones, and
// of these for AMDGPU wrong code: lanes that leave the inner loop early are taken to have failed.
Word word_of(llvm::IRBuilder<>& b, const MachineFeatures& f, DType type, Value* pointer) {
  const auto bits = static_cast<unsigned>(ir::dtype_bits(type));
  if (bits >= 32 || !(f.nvptx || f.amdgpu)) return {b.getIntNTy(bits), pointer, nullptr};
  Value* address = b.CreateTrunc(b.CreatePtrToInt(pointer, b.getInt64Ty()), b.getInt32Ty());
  Value* offset = b.CreateAnd(address, b.getInt32(bits == 8 ? 3 : 2));
  Value* aligned = b.CreateGEP(b.getInt8Ty(), pointer, b.CreateNeg(b.CreateZExt(offset, b.getInt64Ty())));
  return {b.getInt32Ty(), aligned, b.CreateShl(offset, b.getInt32(3))};
}

// Bits of an element in a word: an instruction on the word that leaves its others as they are. Gives the old
// value as it is stored.
Value* change_bits(llvm::IRBuilder<>& b, const MachineFeatures& f, AtomicKind kind, DType type,
                   Value* pointer, Value* held) {
  const auto bits = static_cast<unsigned>(ir::dtype_bits(type));
  const Word word = word_of(b, f, type, pointer);
  const auto in_word = [&](Value* own) { return b.CreateShl(b.CreateZExt(own, word.type), word.shift); };
  Value* own = b.CreateBitCast(to_storage(b, type, held), b.getIntNTy(bits));
  const bool is_and = kind == AtomicKind::bit_and;
  const Instruction op = is_and                       ? Instruction::And
                         : kind == AtomicKind::bit_or ? Instruction::Or
                                                      : Instruction::Xor;
  Value* change = is_and ? b.CreateNot(in_word(b.CreateNot(own))) : in_word(own);
  Value* old = b.CreateAtomicRMW(op, word.pointer, change, llvm::Align(4), llvm::AtomicOrdering::Monotonic,
                                 scope_of(b, f));
  return b.CreateBitCast(b.CreateTrunc(b.CreateLShr(old, word.shift), b.getIntNTy(bits)),
                         storage_type(b.getContext(), type));
}

// Gives the old value as it is stored.
Value* swap_loop(llvm::IRBuilder<>& b, Operators& ops, const MachineFeatures& f, AtomicKind kind, DType type,
                 Value* pointer, Value* held, Value* expected) {
  llvm::LLVMContext& c = b.getContext();
  llvm::Function* function = b.GetInsertBlock()->getParent();
  llvm::Type* stored = storage_type(c, type);
  llvm::IntegerType* own = b.getIntNTy(static_cast<unsigned>(ir::dtype_bits(type)));
  const Word word = word_of(b, f, type, pointer);
  const llvm::Align align(word.type->getBitWidth() / 8);
  constexpr auto kRelaxed = llvm::AtomicOrdering::Monotonic;
  llvm::LoadInst* first = b.CreateAlignedLoad(word.type, word.pointer, align);
  first->setAtomic(kRelaxed, scope_of(b, f));
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* again = llvm::BasicBlock::Create(c, "swap", function);
  auto* done = llvm::BasicBlock::Create(c, "swapped", function);
  b.CreateBr(again);
  b.SetInsertPoint(again);
  llvm::PHINode* old = b.CreatePHI(word.type, 2);
  old->addIncoming(first, before);
  Value* element =
      b.CreateBitCast(word.shift ? b.CreateTrunc(b.CreateLShr(old, word.shift), own) : old, stored);
  Value* current = from_storage(b, type, element);
  Value* next = held;
  if (kind == AtomicKind::compare_exchange)
    next = b.CreateSelect(b.CreateICmpEQ(current, expected), held, current);
  else if (kind != AtomicKind::exchange)
    next = ops.binary(ir::atomic_operation(kind), type, type, current, held);
  Value* bits = b.CreateBitCast(to_storage(b, type, next), own);
  if (word.shift) {
    Value* others = b.CreateNot(b.CreateShl(b.getInt32((1U << own->getIntegerBitWidth()) - 1), word.shift));
    bits = b.CreateOr(b.CreateAnd(old, others), b.CreateShl(b.CreateZExt(bits, word.type), word.shift));
  }
  Value* swapped = b.CreateAtomicCmpXchg(word.pointer, old, bits, align, kRelaxed, kRelaxed, scope_of(b, f));
  old->addIncoming(b.CreateExtractValue(swapped, 0), b.GetInsertBlock());
  b.CreateCondBr(b.CreateExtractValue(swapped, 1), done, again);
  b.SetInsertPoint(done);
  return element;
}

// The same of integers that GPUs swap at once.
Value* compare_exchange(llvm::IRBuilder<>& b, const MachineFeatures& f, DType type, Value* pointer,
                        Value* expected, Value* held) {
  constexpr auto kRelaxed = llvm::AtomicOrdering::Monotonic;
  const llvm::Align align(static_cast<uint64_t>(ir::dtype_bytes(type)));
  Value* swapped = b.CreateAtomicCmpXchg(pointer, to_storage(b, type, expected), to_storage(b, type, held),
                                         align, kRelaxed, kRelaxed, scope_of(b, f));
  return b.CreateExtractValue(swapped, 0);
}

}  // namespace

void emit_atomic(llvm::IRBuilder<>& b, Operators& ops, const MachineFeatures& f, AtomicKind kind, DType type,
                 Value* pointer, Value* held, const AtomicParts& parts) {
  const llvm::Align align(static_cast<uint64_t>(ir::dtype_bytes(type)));
  where(b, parts.condition, [&] {
    Value* old = nullptr;
    if (ir::releases(parts.order)) fence(b, f, llvm::AtomicOrdering::Release, pointer);
    if (const auto op = instruction(f, kind, type, parts.sums_narrow)) {
      Value* stored = to_storage(b, type, held);
      if (type == DType::bf16 && *op == Instruction::FAdd) stored = b.CreateBitCast(stored, b.getBFloatTy());
      old = b.CreateAtomicRMW(*op, pointer, stored, align, llvm::AtomicOrdering::Monotonic, scope_of(b, f));
    } else if (kind == AtomicKind::compare_exchange && ir::dtype_bits(type) >= 32)
      old = compare_exchange(b, f, type, pointer, parts.expected, held);
    else if (ir::dtype_bits(type) < 32 && (f.nvptx || f.amdgpu) && kind >= AtomicKind::bit_and &&
             kind <= AtomicKind::bit_xor)
      old = change_bits(b, f, kind, type, pointer, held);
    else
      old = swap_loop(b, ops, f, kind, type, pointer, held, parts.expected);
    if (ir::acquires(parts.order)) fence(b, f, llvm::AtomicOrdering::Acquire, pointer);
    if (parts.old_to) b.CreateAlignedStore(old, parts.old_to, align);
  });
}

void emit_wide_add(llvm::IRBuilder<>& b, const MachineFeatures& f, const char* form, Value* pointer,
                   const std::vector<Value*>& words, const AtomicParts& parts) {
  std::string registers, constraints = "l,";
  std::vector<Value*> operands = {pointer};
  std::vector<llvm::Type*> types = {pointer->getType()};
  for (Value* word : words) {
    registers += (registers.empty() ? "$" : ", $") + std::to_string(operands.size());
    constraints += "r,";
    operands.push_back(b.CreateBitCast(word, b.getInt32Ty()));
    types.push_back(b.getInt32Ty());
  }
  if (words.size() > 1) registers = "{" + registers + "}";
  auto* type = llvm::FunctionType::get(b.getVoidTy(), types, false);
  const std::string text = std::string("red.global.add") + form + " [$0], " + registers + ";";
  where(b, parts.condition, [&] {
    if (ir::releases(parts.order)) fence(b, f, llvm::AtomicOrdering::Release, pointer);
    b.CreateCall(type, llvm::InlineAsm::get(type, text, constraints + "~{memory}", true), operands);
    if (ir::acquires(parts.order)) fence(b, f, llvm::AtomicOrdering::Acquire, pointer);
  });
}

void emit_append(llvm::IRBuilder<>& b, const MachineFeatures& f, Value* base, Value* index, Value* held,
                 Value* condition) {
  llvm::Type* word = b.getInt64Ty();
  const llvm::Align align(8);
  where(b, condition, [&] {
    Value* number = b.CreateAtomicRMW(Instruction::Add, base, b.getInt64(1), align,
                                      llvm::AtomicOrdering::Monotonic, scope_of(b, f));
    where(b, b.CreateICmpULT(number, b.getInt64(ir::kPrintRecords)), [&] {
      Value* record = b.CreateGEP(word, base, b.CreateShl(number, b.getInt64(1)));
      b.CreateAlignedStore(index, b.CreateConstGEP1_64(word, record, 1), align);
      b.CreateAlignedStore(held, b.CreateConstGEP1_64(word, record, 2), align);
    });
  });
}

}  // namespace tilegen::codegen
