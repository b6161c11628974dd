// What lanes of a warp give each other. Shuffles in a row of elements smaller than a word, from one lane,
// share a word.
#include "analysis/loads.h"
#include "codegen/llvm/gpu/gpu_emitter.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

// The next statement is a shuffle of the same kind from the same lane, of what none before it has stored.
bool GpuEmitter::goes_on(const Shuffle& shuffle) {
  const auto* next = next_ ? std::get_if<Shuffle>(&next_->node) : nullptr;
  if (!next || next->mode != shuffle.mode || next->lane != shuffle.lane ||
      program_.memory(next->dst).type != program_.memory(shuffle.dst).type)
    return false;
  std::set<MemoryId> stored;
  for (const Given& g : given_) stored.insert(g.shuffle->dst);
  for (ir::ExprId e : {next->value, next->dst_index, next->lane})
    if (analysis::reads_any(exprs_, e, stored)) return false;
  return true;
}

void GpuEmitter::emit_node(const Shuffle& shuffle) {
  const ir::DType t = program_.memory(shuffle.dst).type;
  if (ir::dtype_bytes(t) > 4) return refuse("a shuffle of 8-byte elements");
  given_.push_back({&shuffle, value(shuffle.value), resized(value(shuffle.lane), 32, shuffle.lane)});
  if (static_cast<int>(given_.size()) < word_elements(t) && goes_on(shuffle)) return;
  const bool whole = static_cast<int>(given_.size()) == word_elements(t);
  while (!given_.empty()) emit_shuffles(whole ? given_.size() : given_.size() > 1 ? 2 : 1);
}

// The first ones, in one. f16 and bf16 alone travel in the f32 they are held in.
void GpuEmitter::emit_shuffles(size_t count) {
  const Shuffle& first = *given_.front().shuffle;
  const ir::DType t = program_.memory(first.dst).type;
  Values held;
  for (size_t i = 0; i < count; ++i) held.push_back(given_[i].held);
  llvm::Type* type = held[0]->getType();
  const auto word = [&](Value* v) {
    return v->getType()->isIntegerTy(32) ? v : b_.CreateZExt(v, b_.getInt32Ty());
  };
  if (count > 1) {
    Value* got = shuffled(first.mode, word(packing_.words(t, held).front()), given_.front().lane);
    held = packing_.elements(t, Values{got}, static_cast<int64_t>(count));
  } else {
    Value* bits = type->isFloatTy() ? b_.CreateBitCast(held[0], b_.getInt32Ty()) : word(held[0]);
    Value* got = shuffled(first.mode, bits, given_.front().lane);
    held[0] = type->isFloatTy() ? b_.CreateBitCast(got, type) : b_.CreateTrunc(got, type);
  }
  for (size_t i = 0; i < count; ++i) {
    Store store;
    store.memory = given_[i].shuffle->dst;
    store_element(store, given_[i].shuffle->dst_index, held[i], {});
  }
  given_.erase(given_.begin(), given_.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace tilegen::codegen
