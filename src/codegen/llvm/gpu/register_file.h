// The local memories of a thread as SSA values: what each element holds at the point being emitted.
//
// A word (packing.h) is known as a whole, or element by element, or both; it is turned from one into the
// other when somebody asks. Where control flow joins, memories written on the way get phis: of words for
// memories that matrix instructions use as such, or that only hold what is copied (`packed`), of elements for
// the others.
#pragma once

#include <set>
#include <vector>

#include "codegen/llvm/gpu/packing.h"
#include "thread/thread_program.h"

namespace tilegen::codegen {

class RegisterFile {
 public:
  RegisterFile(const thread::ThreadProgram& program, llvm::IRBuilder<>& b, Packing& packing);

  bool owns(thread::MemoryId m) const { return first_word_[m.value] >= 0; }
  llvm::Value* get(thread::MemoryId m, int64_t index);  // held
  void set(thread::MemoryId m, int64_t index, llvm::Value* held);
  // Machine registers, as matrix instructions take them: words of several elements as i32, other elements as
  // held. A value to set may be of any type of that size.
  llvm::Value* get_register(thread::MemoryId m, int64_t word);
  void set_register(thread::MemoryId m, int64_t word, llvm::Value* value);

  // Control flow. `State` is what all registers hold; `Values` what those of some memories hold, in a fixed
  // order.
  struct Word {
    llvm::Value* packed = nullptr;
    llvm::Value* element[4] = {};  // known values; one that is missing is in `packed`
    bool changed = false;          // an element is newer than `packed`
  };
  using State = std::vector<Word>;
  using Values = std::vector<llvm::Value*>;
  using Memories = std::set<uint32_t>;

  State state() const { return words_; }
  void restore(State s) { words_ = std::move(s); }
  Memories written(const thread::Block& body) const;
  Values values(const Memories& memories);  // may emit code at the insertion point
  void assign(const Memories& memories, const Values& values);

 private:
  llvm::Value* get_word(thread::MemoryId m, int64_t word);
  Word& word(thread::MemoryId m, int64_t index);
  void collect_written(const thread::Block& body, Memories& out) const;
  void mark_packed();
  void mark_copied();

  const thread::ThreadProgram& program_;
  llvm::IRBuilder<>& b_;
  Packing& packing_;
  State words_;
  std::vector<int64_t> first_word_;  // by MemoryId; -1: not a register memory
  std::vector<int64_t> word_count_;
  std::vector<bool> packed_;
};

}  // namespace tilegen::codegen
