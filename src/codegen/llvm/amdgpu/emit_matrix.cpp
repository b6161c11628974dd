// Products of a wave: matrix instructions, dot products and multiply-adds of the lanes.
#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/llvm/amdgpu/amd_emitter.h"
#include "codegen/llvm/native_functions.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

namespace {

// Registers of one size, beside each other, as a value of `type`.
Value* together(llvm::IRBuilder<>& b, const std::vector<Value*>& registers, llvm::Type* type) {
  if (registers.size() == 1) return b.CreateBitCast(registers[0], type);
  auto* vector = llvm::FixedVectorType::get(registers[0]->getType(), static_cast<unsigned>(registers.size()));
  Value* all = llvm::PoisonValue::get(vector);
  for (size_t i = 0; i < registers.size(); ++i) all = b.CreateInsertElement(all, registers[i], uint64_t{i});
  return b.CreateBitCast(all, type);
}

}  // namespace

// A slice of a register memory: words of several elements, or elements of a word or two.
AmdEmitter::Values AmdEmitter::matrix_operand(MemoryId memory, ir::ExprId index, int elements) {
  Values registers;
  const int per_word = word_elements(program_.memory(memory).type);
  const auto word = first_word(memory, index);
  for (int i = 0; word && i < elements / per_word; ++i)
    registers.push_back(registers_.get_register(memory, *word + i));
  return registers;
}

// Loads of operands from shared memory stand where they were put, in front of the products of a step before:
// the scheduler would move them to their own products, and each would wait for its own. Nothing moves across:
// with a mask of what may, LLVM 19.1.7 forgets the order of accesses and s_barrier around.
void AmdEmitter::keep_loads_in_front() {
  const llvm::BasicBlock& block = *b_.GetInsertBlock();
  if (block.empty() || &block.back() == product_end_) return;
  b_.CreateIntrinsic(llvm::Intrinsic::amdgcn_sched_barrier, {}, {b_.getInt32(0)});
}

void AmdEmitter::emit_node(const WarpMma& mma) {
  const target::MmaAtom* atom = target::find_mma_atom(target_, mma.atom);
  if (atom && atom->unit == target::MmaUnit::multiply_add) return emit_fma(mma);
  if (atom && atom->given) return emit_given(mma, *atom);
  const auto id =
      atom ? llvm::Function::lookupIntrinsicID(atom->instruction) : llvm::Intrinsic::not_intrinsic;
  if (id == llvm::Intrinsic::not_intrinsic)
    return refuse("no instruction for matrix atom '" + mma.atom + "'");
  if (mma.a_registers != atom->a_layout.registers() || mma.b_registers != atom->b_layout.registers() ||
      mma.c_registers != atom->c_layout.registers())
    return refuse("atom '" + mma.atom + "' takes other numbers of elements");
  llvm::Function* product = llvm::Intrinsic::getDeclaration(&module_, id);
  if (atom->unit == target::MmaUnit::dot) {
    const llvm::FunctionType* type = product->getFunctionType();
    return emit_dots(mma, [&](Value* a, Value* b, Value* sum) {
      return b_.CreateCall(product, {b_.CreateBitCast(a, type->getParamType(0)),
                                     b_.CreateBitCast(b, type->getParamType(1)), sum, b_.getFalse()});
    });
  }
  keep_loads_in_front();
  Values a = matrix_operand(mma.a, mma.a_index, mma.a_registers),
         b = matrix_operand(mma.b, mma.b_index, mma.b_registers);
  const Values c = matrix_operand(mma.c, mma.c_index, mma.c_registers);
  if (atom->sparse() != mma.places.valid())
    refuse("atom '" + mma.atom + (atom->sparse() ? "' takes a register of places" : "' takes no places"));
  const Values places = atom->sparse() ? matrix_operand(mma.places, mma.places_index, 1) : Values();
  if (refused()) return;
  if (atom->transposed) std::swap(a, b);
  const llvm::FunctionType* type = product->getFunctionType();
  Value* none = b_.getInt32(0);  // no broadcast, no permutation; of places the lowest
  Value* sum = b_.CreateCall(
      product, {together(b_, a, type->getParamType(0)), together(b_, b, type->getParamType(1)),
                together(b_, c, type->getParamType(2)), atom->sparse() ? places[0] : none, none, none});
  const auto word = first_word(mma.c, mma.c_index);
  for (size_t i = 0; word && i < c.size(); ++i)
    registers_.set_register(mma.c, *word + static_cast<int64_t>(i),
                            b_.CreateExtractElement(sum, uint64_t{i}));
  product_end_ = &b_.GetInsertBlock()->back();
}

// Of words, as which inline assembly takes operands.
void AmdEmitter::emit_given(const WarpMma& mma, const target::MmaAtom& atom) {
  if (mma.a_registers != atom.a_layout.registers() || mma.b_registers != atom.b_layout.registers() ||
      mma.c_registers != atom.c_layout.registers())
    return refuse("atom '" + mma.atom + "' takes other numbers of elements");
  const Values a = matrix_operand(mma.a, mma.a_index, mma.a_registers),
               b = matrix_operand(mma.b, mma.b_index, mma.b_registers),
               c = matrix_operand(mma.c, mma.c_index, mma.c_registers);
  if (refused()) return;
  const auto words = [&](const Values& registers) {
    const auto bits = registers[0]->getType()->getPrimitiveSizeInBits().getFixedValue() * registers.size();
    return together(b_, registers, matrix_words(b_, static_cast<int64_t>(bits) / 32));
  };
  Value* sum = call_matrix_instruction(b_, *atom.given, words(a), words(b), words(c));
  llvm::Type* const of_c = c[0]->getType();
  const auto count = static_cast<unsigned>(c.size());
  sum = b_.CreateBitCast(sum, count == 1 ? of_c : llvm::FixedVectorType::get(of_c, count));
  const auto word = first_word(mma.c, mma.c_index);
  for (size_t i = 0; word && i < c.size(); ++i)
    registers_.set_register(mma.c, *word + static_cast<int64_t>(i),
                            count == 1 ? sum : b_.CreateExtractElement(sum, uint64_t{i}));
}

}  // namespace tilegen::codegen
