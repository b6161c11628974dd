#include "codegen/llvm/amdgpu/keep_lane_moves.h"

#include <vector>

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsAMDGPU.h>
#include <llvm/Support/KnownBits.h>

namespace tilegen::codegen {

namespace {

using llvm::Instruction;
using llvm::IntrinsicInst;
using llvm::Value;

constexpr uint64_t kRegisterBits = 32;

bool is_one_register(const Value& v) {
  const llvm::TypeSize bits = v.getType()->getPrimitiveSizeInBits();
  return bits.isFixed() && bits.getFixedValue() != 0 && bits.getFixedValue() <= kRegisterBits;
}

// Selected as an instruction that reads the value, whatever is around it. A negation is none: it becomes the
// sign of an operand.
bool is_instruction(const Instruction& i) {
  switch (i.getOpcode()) {
    case Instruction::FAdd:
    case Instruction::FSub:
    case Instruction::FMul:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Mul:
    case Instruction::FCmp:
    case Instruction::ICmp:
    case Instruction::Select:
    case Instruction::FPTrunc:
    case Instruction::FPExt:
      return true;
    default:
      break;
  }
  const auto* call = llvm::dyn_cast<IntrinsicInst>(&i);
  if (!call) return false;
  switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::amdgcn_update_dpp:
    case llvm::Intrinsic::fma:
    case llvm::Intrinsic::maxnum:
    case llvm::Intrinsic::minnum:
    case llvm::Intrinsic::smax:
    case llvm::Intrinsic::smin:
    case llvm::Intrinsic::umax:
    case llvm::Intrinsic::umin:
      return true;
    default:
      return false;
  }
}

bool is_known_in_part(const Value* v, const llvm::DataLayout& layout) {
  return v->getType()->isIntOrIntVectorTy() && !llvm::computeKnownBits(v, layout).isUnknown();
}

// May be selected as nothing, as a mask or a minimum is where it leaves the value as it is, by what is known
// of the operands or in the bits that are asked for: who uses it uses the value.
bool may_vanish(const Instruction& i) {
  if (llvm::isa<llvm::BitCastInst>(i)) return true;
  const auto* call = llvm::dyn_cast<IntrinsicInst>(&i);
  const bool is_move = call && call->getIntrinsicID() == llvm::Intrinsic::amdgcn_update_dpp;
  if (is_move || !i.getType()->isIntOrIntVectorTy()) return false;
  if (!call && !llvm::isa<llvm::BinaryOperator>(i)) return false;
  const llvm::DataLayout& layout = i.getModule()->getDataLayout();
  return llvm::any_of(i.operands(), [&](const Value* v) { return is_known_in_part(v, layout); });
}

// `seen`: values that are looked into already.
bool is_for_single_registers(const Value& v, llvm::SmallPtrSetImpl<const Value*>& seen) {
  if (!is_one_register(v)) return false;
  if (!seen.insert(&v).second) return true;
  return llvm::all_of(v.users(), [&](const llvm::User* user) {
    const auto& i = llvm::cast<Instruction>(*user);
    if (may_vanish(i)) return is_for_single_registers(i, seen);
    return is_one_register(i) && is_instruction(i);
  });
}

bool is_for_single_registers(const Value& v) {
  llvm::SmallPtrSet<const Value*, 8> seen;
  return is_for_single_registers(v, seen);
}

}  // namespace

void keep_lane_moves(llvm::Module& module) {
  std::vector<IntrinsicInst*> moves;
  for (llvm::Function& f : module)
    for (Instruction& i : llvm::instructions(f))
      if (auto* call = llvm::dyn_cast<IntrinsicInst>(&i))
        if (call->getIntrinsicID() == llvm::Intrinsic::amdgcn_update_dpp && !is_for_single_registers(*call))
          moves.push_back(call);
  for (IntrinsicInst* move : moves) {
    llvm::IRBuilder<> b(move->getNextNode());
    llvm::Type* type = move->getType();
    auto* same = llvm::FunctionType::get(type, {type}, false);
    // Empty: what LLVM does not look into.
    llvm::CallInst* kept =
        b.CreateCall(llvm::InlineAsm::get(same, "", "=v,0", /*hasSideEffects=*/false), {move});
    kept->setDoesNotAccessMemory();
    move->replaceUsesWithIf(kept, [&](const llvm::Use& use) { return use.getUser() != kept; });
  }
}

}  // namespace tilegen::codegen
