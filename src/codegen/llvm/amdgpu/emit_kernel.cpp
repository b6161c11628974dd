// The kernel around a body: its attributes, shared memory, launch registers.
#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/llvm/amdgpu/amd_emitter.h"
#include "support/checked.h"

namespace tilegen::codegen {

using llvm::Value;

namespace {

// "Kernel Dispatch": the runtime's own arguments follow the kernel's; the first is the number of blocks.
constexpr unsigned kConstantSpace = 4;

}  // namespace

std::optional<std::string> AmdEmitter::unsupported() const {
  if (!program_.barriers.empty() || !program_.tensor_maps.empty())
    return target_.name + " has no copy engine and no transaction barriers";
  if (program_.cluster > 1) return target_.name + " has no clusters of blocks";
  if (program_.dynamic_tiles) return target_.name + " has no code for a claim of tiles";
  return std::nullopt;
}

void AmdEmitter::declare_kernel() {
  create_function({});
  function_->setCallingConv(llvm::CallingConv::AMDGPU_KERNEL);
  function_->setVisibility(llvm::GlobalValue::ProtectedVisibility);
  const std::string threads = std::to_string(program_.threads);
  function_->addFnAttr("amdgpu-flat-work-group-size", threads + "," + threads);
  function_->addFnAttr("uniform-work-group-size", "true");
  // Waves of the blocks that shall be resident, on four units.
  const int64_t waves = ceil_div(program_.threads, int64_t{target_.warp});
  const int64_t least = ceil_div(waves * std::max<int64_t>(program_.min_blocks, 1), int64_t{4});
  function_->addFnAttr("amdgpu-waves-per-eu", std::to_string(std::min<int64_t>(least, 8)));
  // With two waves a lane has 256 registers, all of which plain code reaches; LLVM would make a half of them
  // accumulation registers, and move sums between the halves.
  if (least > 1) function_->addFnAttr("amdgpu-no-agpr");
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
  if (program_.arena_bytes == 0) return;
  // Any access of a lane finds its bytes at the beginning, where its predicate does not hold. At the end LLVM
  // reads three bytes as a word: whole vectors are there.
  const auto bytes = static_cast<uint64_t>(ceil_div(program_.arena_bytes, target_.vector_bytes)) *
                     static_cast<uint64_t>(target_.vector_bytes);
  auto* type = llvm::ArrayType::get(b_.getInt8Ty(), bytes);
  shared_ = new llvm::GlobalVariable(module_, type, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
                                     llvm::PoisonValue::get(type), symbol_ + ".shared", nullptr,
                                     llvm::GlobalValue::NotThreadLocal, kSharedSpace);
  shared_->setAlignment(llvm::Align(128));
}

Value* AmdEmitter::block_index(unsigned dimension, int64_t count) {
  using namespace llvm::Intrinsic;
  constexpr ID kBlock[] = {amdgcn_workgroup_id_x, amdgcn_workgroup_id_y, amdgcn_workgroup_id_z};
  return below(b_.CreateIntrinsic(kBlock[dimension], {}, {}), count);
}

Value* AmdEmitter::launched_blocks(int64_t) {
  Value* arguments = b_.CreateIntrinsic(llvm::Intrinsic::amdgcn_implicitarg_ptr, {}, {});
  llvm::LoadInst* blocks = b_.CreateAlignedLoad(
      b_.getInt32Ty(), b_.CreateAddrSpaceCast(arguments, b_.getPtrTy(kConstantSpace)), llvm::Align(4));
  blocks->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  return blocks;
}

Value* AmdEmitter::thread_index() {
  return below(b_.CreateIntrinsic(llvm::Intrinsic::amdgcn_workitem_id_x, {}, {}), program_.threads);
}

}  // namespace tilegen::codegen
