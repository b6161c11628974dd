// Stores that wait for the loads of the iterations behind them.
//
// Unrolled iterations that read one tile of shared memory and write another would each wait for their loads:
// an assembler moves no load of shared memory before a store to it. With the stores behind the loads of
// several iterations these are in flight together.
#include <algorithm>
#include <functional>
#include <set>

#include "analysis/loads.h"
#include "codegen/llvm/gpu/gpu_emitter.h"

namespace tilegen::codegen {

using ir::ExprId;
using namespace thread;

namespace {

constexpr size_t kMaxLateWords = 32;  // registers of a thread that hold what waits

}  // namespace

std::optional<GpuEmitter::Touched> GpuEmitter::touched_by_stores(const Block& body) {
  Touched touched;
  const std::function<bool(const Block&)> plain = [&](const Block& block) {
    for (StmtId id : block) {
      const StmtNode& node = program_.stmts[id.value].node;
      if (const auto* loop = std::get_if<Loop>(&node)) {
        if (loop->form == LoopForm::serial || !plain(loop->body)) return false;
        continue;
      }
      const auto* store = std::get_if<Store>(&node);
      if (!store || store->atomic || store->old.valid() || store->expected.valid()) return false;
      if (!registers_.owns(store->memory)) touched.written.insert(store->memory.value);
      for (ExprId e : {store->index, store->value, store->predicate, store->streaming_if})
        if (e.valid())
          analysis::any_load(exprs_, e, [&](ExprId, const ir::ExprNode& n) {
            if (!registers_.owns(n.object)) touched.read.insert(n.object.value);
            return false;
          });
    }
    return true;
  };
  if (!plain(body)) return std::nullopt;
  for (uint32_t m : touched.written)
    if (touched.read.contains(m)) return std::nullopt;
  return touched;
}

// Shared memory alone is written: a launch may pass one tensor for two.
bool GpuEmitter::stores_may_wait(const Touched& touched) const {
  const auto shared = [&](uint32_t m) { return program_.memory(MemoryId(m)).space == Space::shared; };
  return !touched.written.empty() && std::ranges::all_of(touched.written, shared) &&
         std::ranges::any_of(touched.read, shared);
}

void GpuEmitter::emit_unrolled_loop(const Loop& loop) {
  const bool outermost = !words_stand_;
  const std::optional<Touched> touched = outermost ? touched_by_stores(loop.body) : std::nullopt;
  if (touched) {
    words_stand_ = true;
    stores_wait_ = stores_may_wait(*touched);
  }
  unrolled_.push_back(loop.var);
  ProgramEmitter::emit_unrolled_loop(loop);
  unrolled_.pop_back();
  if (!touched) return;
  emit_late_stores();
  words_stand_ = stores_wait_ = false;
  words_.clear();
}

void GpuEmitter::put_words(LateStore store) {
  late_stores_.push_back(std::move(store));
  size_t words = 0;
  for (const LateStore& s : late_stores_) words += s.words.size();
  if (!stores_wait_ || words >= kMaxLateWords) emit_late_stores();
}

void GpuEmitter::emit_late_stores() {
  for (const LateStore& s : late_stores_)
    store_words(s.at, program_.memory(s.memory), s.bytes, s.words, s.condition, s.streaming);
  late_stores_.clear();
}

}  // namespace tilegen::codegen
