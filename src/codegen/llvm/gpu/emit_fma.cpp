// Products of plain multiply-adds and of dot products, and the registers of matrix operands.
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/gpu/gpu_emitter.h"

namespace tilegen::codegen {

using llvm::Value;
using namespace thread;

std::optional<int64_t> GpuEmitter::first_word(MemoryId memory, ir::ExprId index) {
  const Memory& m = program_.memory(memory);
  auto at = constant_index(index);
  if (!at) return std::nullopt;
  if (*at % word_elements(m.type) == 0) return *at / word_elements(m.type);
  refuse("a matrix operand that starts inside a register, at element " + std::to_string(*at) + " of '" +
         m.name + "'");
  return std::nullopt;
}

// C += A * B, one element of each a lane.
void GpuEmitter::emit_fma(const WarpMma& mma) {
  auto a = constant_index(mma.a_index), b = constant_index(mma.b_index), c = constant_index(mma.c_index);
  if (!a || !b || !c) return;
  if (mma.a_registers != 1 || mma.b_registers != 1 || mma.c_registers != 1)
    return refuse("atom '" + mma.atom + "' takes one element of each operand");
  ir::DType t = program_.memory(mma.c).type;
  auto operand = [&](MemoryId m, int64_t at) {
    return ops_.unary(ir::ExprOp::cast, program_.memory(m).type, t, registers_.get(m, at));
  };
  Value* x = operand(mma.a, *a);
  Value* y = operand(mma.b, *b);
  Value* old = registers_.get(mma.c, *c);
  Value* sum = ir::is_float(t) ? b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, old})
                               : b_.CreateAdd(b_.CreateMul(x, y), old);
  registers_.set(mma.c, *c, sum);
}

// C += A * B, every element of C the dot product of two registers.
void GpuEmitter::emit_dots(const WarpMma& mma, const Dot& dot) {
  const int per_word = word_elements(program_.memory(mma.a).type);
  const int rows = mma.a_registers / per_word, columns = mma.b_registers / per_word;
  const auto a = first_word(mma.a, mma.a_index), b = first_word(mma.b, mma.b_index),
             c = first_word(mma.c, mma.c_index);
  if (!a || !b || !c) return;
  if (rows * columns != mma.c_registers)
    return refuse("atom '" + mma.atom + "' of " + std::to_string(rows) + " rows and " +
                  std::to_string(columns) + " columns takes as many sums, '" + program_.memory(mma.c).name +
                  "' gives " + std::to_string(mma.c_registers));
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      const int64_t at = *c + i * columns + j;
      registers_.set(mma.c, at,
                     dot(registers_.get_register(mma.a, *a + i), registers_.get_register(mma.b, *b + j),
                         registers_.get(mma.c, at)));
    }
}

}  // namespace tilegen::codegen
