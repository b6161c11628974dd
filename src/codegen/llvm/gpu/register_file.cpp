#include "codegen/llvm/gpu/register_file.h"

#include "codegen/llvm/types.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

RegisterFile::RegisterFile(const ThreadProgram& program, llvm::IRBuilder<>& b, Packing& packing)
    : program_(program),
      b_(b),
      packing_(packing),
      first_word_(program.memories.size(), -1),
      word_count_(program.memories.size(), 0),
      packed_(program.memories.size(), false) {
  int64_t total = 0;
  for (size_t i = 0; i < program.memories.size(); ++i) {
    const Memory& m = program.memories[i];
    if (m.space != Space::local) continue;
    first_word_[i] = total;
    int64_t per_word = word_elements(m.type);
    word_count_[i] = (m.elements + per_word - 1) / per_word;
    total += word_count_[i];
  }
  words_.resize(static_cast<size_t>(total));
  mark_packed();
}

// Elements of these memories are loaded from tensors and stored as they are to shared memory or to registers
// that are words, and nothing else: where control flow joins words do, and no load is waited for to be taken
// apart.
void RegisterFile::mark_copied() {
  std::vector<bool> copied(packed_.size(), false);
  const auto loaded = [&](ir::ExprId e) {  // the register memory of a load, or an invalid one
    const ir::ExprNode& n = program_.exprs[e];
    return n.op == ir::ExprOp::load && owns(n.object) ? n.object : MemoryId();
  };
  for (const Stmt& s : program_.stmts)
    if (const auto* store = std::get_if<Store>(&s.node); store && owns(store->memory)) {
      const ir::DType t = program_.memory(store->memory).type;
      copied[store->memory.value] = packing_.joins_words(t);
    }
  const auto used = [&](ir::ExprId e) {
    if (e.valid() && loaded(e).valid()) copied[loaded(e).value] = false;
  };
  for (size_t i = 0; i < program_.exprs.size(); ++i) {
    const ir::ExprNode& n = program_.exprs[ir::ExprId(i)];
    for (ir::ExprId operand : {n.a, n.b, n.c}) used(operand);
  }
  const auto keeps_words = [&](const Store& s) {
    const Memory& to = program_.memory(s.memory);
    const MemoryId from = loaded(s.value);
    return to.space == Space::shared || (owns(s.memory) && packed_[s.memory.value] && from.valid() &&
                                         program_.memory(from).type == to.type);
  };
  for (const Stmt& s : program_.stmts) {
    if (const auto* shuffle = std::get_if<Shuffle>(&s.node)) {
      used(shuffle->value);
      if (owns(shuffle->dst)) copied[shuffle->dst.value] = false;
    }
    if (const auto* vote = std::get_if<Vote>(&s.node)) {
      used(vote->value);
      if (owns(vote->dst)) copied[vote->dst.value] = false;
    }
    const auto* store = std::get_if<Store>(&s.node);
    if (!store) continue;
    if (!keeps_words(*store) || store->atomic) used(store->value);
    if (!owns(store->memory)) continue;
    const ir::ExprNode& value = program_.exprs[store->value];
    if (value.op != ir::ExprOp::load || program_.memory(value.object).space != Space::global)
      copied[store->memory.value] = false;
  }
  for (size_t m = 0; m < copied.size(); ++m)
    if (copied[m]) packed_[m] = true;
}

void RegisterFile::mark_packed() {
  auto pack = [&](MemoryId m) { packed_[m.value] = owns(m) && word_elements(program_.memory(m).type) > 1; };
  for (const Stmt& s : program_.stmts) {
    if (auto* load = std::get_if<LoadMatrix>(&s.node)) pack(load->dst);
    if (auto* store = std::get_if<StoreMatrix>(&s.node)) pack(store->src);
    if (auto* mma = std::get_if<WarpMma>(&s.node))
      for (MemoryId m : {mma->a, mma->b, mma->c}) pack(m);
    if (auto* mma = std::get_if<WarpgroupMma>(&s.node))
      for (MemoryId m : {mma->a, mma->c}) pack(m);
    if (auto* wait = std::get_if<WarpgroupWait>(&s.node))
      for (MemoryId m : wait->registers) pack(m);
  }
  mark_copied();
}

RegisterFile::Word& RegisterFile::word(MemoryId m, int64_t index) {
  return words_[static_cast<size_t>(first_word_[m.value] + index)];
}

// What was never written reads as 0.
Value* RegisterFile::get(MemoryId m, int64_t index) {
  ir::DType t = program_.memory(m).type;
  int per_word = word_elements(t), position = static_cast<int>(index % per_word);
  Word& w = word(m, index / per_word);
  Value*& held = w.element[position];
  if (!held)
    held = w.packed ? packing_.unpack(t, w.packed, position)
                    : llvm::Constant::getNullValue(held_type(b_.getContext(), t));
  return held;
}

void RegisterFile::set(MemoryId m, int64_t index, Value* held) {
  int per_word = word_elements(program_.memory(m).type);
  Word& w = word(m, index / per_word);
  w.element[index % per_word] = held;
  w.changed = true;
}

Value* RegisterFile::get_word(MemoryId m, int64_t index) {
  Word& w = word(m, index);
  if (w.packed && !w.changed) return w.packed;
  ir::DType t = program_.memory(m).type;
  int per_word = word_elements(t);
  Value* held[4];
  for (int i = 0; i < per_word; ++i) held[i] = get(m, index * per_word + i);
  w.packed = packing_.pack(t, {held, static_cast<size_t>(per_word)});
  w.changed = false;
  return w.packed;
}

Value* RegisterFile::get_register(MemoryId m, int64_t index) {
  return word_elements(program_.memory(m).type) > 1 ? get_word(m, index) : get(m, index);
}

void RegisterFile::set_register(MemoryId m, int64_t index, Value* value) {
  ir::DType t = program_.memory(m).type;
  if (word_elements(t) == 1) return set(m, index, b_.CreateBitCast(value, held_type(b_.getContext(), t)));
  word(m, index) = Word{};
  word(m, index).packed = packing_.bits(value);
}

void RegisterFile::collect_written(const Block& body, Memories& out) const {
  auto add = [&](MemoryId m) {
    if (owns(m)) out.insert(m.value);
  };
  for (StmtId id : body) {
    const StmtNode& node = program_.stmts[id.value].node;
    for (const Block* inner : blocks_inside(node)) collect_written(*inner, out);
    if (auto* s = std::get_if<Store>(&node)) add(s->memory);
    if (auto* s = std::get_if<Shuffle>(&node)) add(s->dst);
    if (auto* s = std::get_if<Vote>(&node)) add(s->dst);
    if (auto* s = std::get_if<FetchTile>(&node)) add(s->dst);
    if (auto* s = std::get_if<TransactionTest>(&node)) add(s->dst);
    if (auto* s = std::get_if<LoadMatrix>(&node)) add(s->dst);
    if (auto* s = std::get_if<ClusterLoad>(&node)) add(s->dst);
    if (auto* s = std::get_if<WarpMma>(&node)) add(s->c);
    if (auto* s = std::get_if<WarpgroupMma>(&node)) add(s->c);
    if (auto* s = std::get_if<WarpgroupWait>(&node))
      for (MemoryId m : s->registers) add(m);
  }
}

RegisterFile::Memories RegisterFile::written(const Block& body) const {
  Memories out;
  collect_written(body, out);
  return out;
}

RegisterFile::Values RegisterFile::values(const Memories& memories) {
  Values out;
  for (uint32_t m : memories) {
    int64_t count = packed_[m] ? word_count_[m] : program_.memories[m].elements;
    for (int64_t i = 0; i < count; ++i)
      out.push_back(packed_[m] ? get_word(MemoryId(m), i) : get(MemoryId(m), i));
  }
  return out;
}

void RegisterFile::assign(const Memories& memories, const Values& values) {
  size_t at = 0;
  for (uint32_t m : memories) {
    int64_t count = packed_[m] ? word_count_[m] : program_.memories[m].elements;
    for (int64_t i = 0; i < word_count_[m]; ++i) word(MemoryId(m), i) = Word{};
    for (int64_t i = 0; i < count; ++i, ++at)
      packed_[m] ? set_register(MemoryId(m), i, values[at]) : set(MemoryId(m), i, values[at]);
  }
}

}  // namespace tilegen::codegen
