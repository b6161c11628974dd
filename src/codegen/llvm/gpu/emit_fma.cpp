// Products of plain multiply-adds, and the registers of matrix operands.
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

}  // namespace tilegen::codegen
