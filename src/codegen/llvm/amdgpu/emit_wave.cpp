// What the lanes of a wave do together, and the waves of a block: votes, shuffles, barriers.
#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/llvm/amdgpu/amd_emitter.h"
#include "support/checked.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

namespace {

// DPP controls ("Data Parallel Primitives"): lanes of a quad permuted, lanes of a row of 16 mirrored, lanes
// of its halves mirrored, a row rotated.
constexpr uint32_t kRowMirror = 0x140, kHalfMirror = 0x141, kRowRotate = 0x120;

constexpr uint32_t quad_permutation(uint32_t mask) {
  uint32_t control = 0;
  for (uint32_t lane = 0; lane < 4; ++lane) control |= (lane ^ mask) << (2 * lane);
  return control;
}

// The control under which lane l gets what lane l ^ mask has; 0: there is none.
constexpr uint32_t dpp_control(uint32_t mask) {
  switch (mask) {
    case 1:
    case 2:
    case 3:
      return quad_permutation(mask);
    case 7:
      return kHalfMirror;
    case 8:
      return kRowRotate + 8;
    case 15:
      return kRowMirror;
    default:
      return 0;
  }
}

constexpr uint32_t kSwizzleLanes = 32;  // ds_swizzle permutes within halves of a wave

}  // namespace

Value* AmdEmitter::ballot(Value* condition) {
  return b_.CreateIntrinsic(llvm::Intrinsic::amdgcn_ballot, {b_.getInt64Ty()}, {condition});
}

Value* AmdEmitter::any_lane(Value* condition) { return b_.CreateICmpNE(ballot(condition), b_.getInt64(0)); }

// All waves of the block meet. What each did to memory before is done when it arrives.
void AmdEmitter::emit_node(const Barrier& barrier) {
  const int64_t whole = ceil_div(program_.threads, int64_t{target_.warp}) * target_.warp;
  if (barrier.arrive_only || barrier.id != 0 || (barrier.threads != 0 && barrier.threads != whole))
    return refuse(target_.name + " has no barrier for a part of the block");
  const llvm::SyncScope::ID block = context_.getOrInsertSyncScopeID("workgroup");
  b_.CreateFence(llvm::AtomicOrdering::Release, block);
  b_.CreateIntrinsic(llvm::Intrinsic::amdgcn_s_barrier, {}, {});
  b_.CreateFence(llvm::AtomicOrdering::Acquire, block);
}

Value* AmdEmitter::own_lane() {
  Value* low = b_.CreateIntrinsic(llvm::Intrinsic::amdgcn_mbcnt_lo, {}, {b_.getInt32(~0u), b_.getInt32(0)});
  return b_.CreateIntrinsic(llvm::Intrinsic::amdgcn_mbcnt_hi, {}, {b_.getInt32(~0u), low});
}

Value* AmdEmitter::of_lane(Value* bits, Value* lane) {
  return b_.CreateIntrinsic(llvm::Intrinsic::amdgcn_ds_bpermute, {}, {b_.CreateShl(lane, 2), bits});
}

// What lane (own ^ mask) has.
Value* AmdEmitter::exchanged(Value* bits, uint32_t mask) {
  const auto dpp = [&](Value* v, uint32_t control) {
    return b_.CreateIntrinsic(llvm::Intrinsic::amdgcn_update_dpp, {v->getType()},
                              {llvm::PoisonValue::get(v->getType()), v, b_.getInt32(control),
                               b_.getInt32(0xf), b_.getInt32(0xf), b_.getTrue()});
  };
  if (mask == 0) return bits;
  if (const uint32_t control = dpp_control(mask)) return dpp(bits, control);
  if (mask == 4) return dpp(dpp(bits, kHalfMirror), quad_permutation(3));
  if (mask < kSwizzleLanes)
    return b_.CreateIntrinsic(llvm::Intrinsic::amdgcn_ds_swizzle, {},
                              {bits, b_.getInt32(mask << 10 | (kSwizzleLanes - 1))});
  return of_lane(bits, b_.CreateXor(own_lane(), b_.getInt32(mask)));
}

Value* AmdEmitter::shuffled(Shuffle::Mode mode, Value* bits, Value* lane) {
  if (mode == Shuffle::Mode::indexed) return of_lane(bits, lane);
  if (const auto* mask = llvm::dyn_cast<llvm::ConstantInt>(lane))
    return exchanged(bits, static_cast<uint32_t>(mask->getZExtValue()));
  return of_lane(bits, b_.CreateXor(own_lane(), lane));
}

}  // namespace tilegen::codegen
