// The operators of expressions on held values (types.h), scalar or vector. Operands of one operation have one
// shape.
#pragma once

#include <optional>
#include <string>

#include <llvm/IR/IRBuilder.h>

#include "codegen/llvm/llvm_setup.h"
#include "ir/expr.h"

namespace tilegen::codegen {

class Operators {
 public:
  Operators(llvm::IRBuilder<>& b, const MachineFeatures& f) : b_(b), features_(f) {}

  llvm::Value* unary(ir::ExprOp op, ir::DType from, ir::DType to, llvm::Value* a);
  // `operand` is the type of a and b, `result` that of the value. `non_negative`: both operands are known to
  // be.
  llvm::Value* binary(ir::ExprOp op, ir::DType operand, ir::DType result, llvm::Value* a, llvm::Value* b,
                      bool non_negative = false);
  llvm::Value* ternary(ir::ExprOp op, ir::DType t, llvm::Value* a, llvm::Value* b, llvm::Value* c);
  // `non_zero`: the divisor is known not to be 0.
  llvm::Value* division(ir::ExprOp op, ir::DType t, llvm::Value* a, llvm::Value* b, bool non_negative,
                        bool non_zero = false);

  // What was asked for and does not exist.
  const std::optional<std::string>& refusal() const { return refusal_; }

 private:
  llvm::Value* function(ir::ExprOp op, ir::DType t, llvm::Value* a);
  llvm::Value* on_floats(ir::ExprOp op, ir::DType t, llvm::Value* a, llvm::Value* b);
  llvm::Value* on_integers(ir::ExprOp op, ir::DType t, llvm::Value* a, llvm::Value* b, bool non_negative);
  llvm::Value* bit_count(ir::ExprOp op, llvm::Value* a);
  llvm::Value* high_product(ir::DType t, llvm::Value* a, llvm::Value* b);
  llvm::Value* high_product_of_halves(ir::DType t, llvm::Value* a, llvm::Value* b);
  llvm::Value* compare(ir::ExprOp op, ir::DType t, llvm::Value* a, llvm::Value* b);
  llvm::Value* unsigned_division(bool quotient, llvm::Value* a, llvm::Value* b);
  llvm::Value* by_constant(bool quotient, ir::DType t, llvm::Value* a, llvm::Value* b, bool non_negative);
  llvm::Value* unknown(ir::ExprOp op, const char* on, llvm::Value* a);

  llvm::IRBuilder<>& b_;
  const MachineFeatures& features_;
  std::optional<std::string> refusal_;
};

}  // namespace tilegen::codegen
