// Elements in machine words: several held values (types.h) in one 32-bit register, or one 8-byte value in a
// 64-bit one, in the order of memory.
//
// What was unpacked from a word and is packed again in the same order is the word itself: a copy costs
// nothing. Sums, differences and products of f16 that end in one word are done on words.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/llvm_setup.h"
#include "ir/dtype.h"

namespace tilegen::codegen {

inline int word_bytes(ir::DType t) { return ir::dtype_bytes(t) == 8 ? 8 : 4; }
inline int word_elements(ir::DType t) { return word_bytes(t) / ir::dtype_bytes(t); }

class Packing {
 public:
  Packing(llvm::IRBuilder<>& b, const MachineFeatures& features) : b_(b), features_(features) {}

  llvm::Type* word_type(ir::DType t);
  llvm::Value* bits(llvm::Value* v);  // as an integer of its size
  llvm::Value* unpack(ir::DType t, llvm::Value* word, int position);
  llvm::Value* pack(ir::DType t, std::span<llvm::Value* const> held);  // word_elements(t) of them
  // One element in the low bits of an integer of its own size, and back.
  llvm::Value* element_bits(ir::DType t, llvm::Value* held);
  llvm::Value* from_element_bits(ir::DType t, llvm::Value* bits);
  // Elements as the registers of one memory access: words, or one smaller register; and back.
  std::vector<llvm::Value*> words(ir::DType t, std::span<llvm::Value* const> held);
  std::vector<llvm::Value*> elements(ir::DType t, std::span<llvm::Value* const> words, int64_t count);

  // Elements that are copied as they are stay in words where control flow joins.
  bool joins_words(ir::DType t) const {
    return word_elements(t) > 1 && (ir::is_float(t) || features_.amdgpu);
  }

 private:
  struct Origin {
    llvm::Value* word = nullptr;
    int position = 0;
    ir::DType type = ir::DType::none;
  };
  const Origin* origin(ir::DType t, llvm::Value* held) const;  // null: of no word
  llvm::Value* unpack_new(ir::DType t, llvm::Value* word, int position);
  llvm::Value* permuted(ir::DType t, std::span<llvm::Value* const> held);
  llvm::Value* permuted_by_pairs(ir::DType t, std::span<llvm::Value* const> held);
  llvm::Value* same_word(ir::DType t, std::span<llvm::Value* const> held);
  llvm::Value* pack_halves(ir::DType t, llvm::Value* low, llvm::Value* high);
  // The 16-bit float that `held` was widened from or is to be rounded to; as `half` or `bfloat`.
  llvm::Value* narrowed(ir::DType t, llvm::Value* held);
  // Two values that are f16 numbers, as <2 x half>; `levels` of operations before them may be done in pairs.
  llvm::Value* half_pair(llvm::Value* low, llvm::Value* high, int levels);
  llvm::Value* operation_on_pairs(llvm::Value* low, llvm::Value* high, int levels);

  llvm::IRBuilder<>& b_;
  const MachineFeatures& features_;
  std::unordered_map<llvm::Value*, Origin> origins_;
};

}  // namespace tilegen::codegen
