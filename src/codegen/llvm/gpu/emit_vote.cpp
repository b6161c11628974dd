// What the lanes of a warp say together.
#include "codegen/llvm/gpu/gpu_emitter.h"
#include "codegen/llvm/gpu/lane_votes.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

// Bit by bit: lanes go on that have the bit as the lane itself has it.
Value* GpuEmitter::matching(Value* value) {
  Value* same = nullptr;
  for (unsigned bit = 0; bit < value->getType()->getIntegerBitWidth(); ++bit) {
    Value* own = b_.CreateTrunc(b_.CreateLShr(value, bit), b_.getInt1Ty());
    Value* set = ballot(own);
    Value* alike = b_.CreateSelect(own, set, b_.CreateNot(set));
    same = same ? b_.CreateAnd(same, alike) : alike;
  }
  return same;
}

void GpuEmitter::emit_node(const Vote& vote) {
  Value* of = value(vote.value);
  Value* said = nullptr;
  const auto own_group = [&](Value* lanes) {
    const auto warp = static_cast<unsigned>(target_.warp);
    return word_of_group(b_, lanes, thread_index(), warp, static_cast<uint64_t>(vote.lanes));
  };
  if (vote.mode == Vote::Mode::match)
    said = own_group(matching(of));
  else if (vote.mode == Vote::Mode::ballot)
    said = own_group(ballot(of));
  else if (vote.lanes == target_.warp)
    said = any_lane(of);
  else
    said = b_.CreateICmpNE(own_group(ballot(of)), b_.getInt32(0));
  Store store;
  store.memory = vote.dst;
  store_element(store, vote.dst_index, said, {});
}

}  // namespace tilegen::codegen
