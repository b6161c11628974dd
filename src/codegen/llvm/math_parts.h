// Pieces the functions of math.h are made of. All take and give values of one floating type, scalar or
// vector.
#pragma once

#include <initializer_list>

#include "codegen/llvm/math.h"

namespace tilegen::codegen::math {

// exp from arithmetic alone, which is more accurate than instructions that approximate it.
llvm::Value* emit_exp_polynomial(Builder& b, const MachineFeatures& f, llvm::Value* x);

// Arithmetic in the type of one argument, so that the formulas below read like formulas.
class Parts {
 public:
  Parts(Builder& b, const MachineFeatures& f, llvm::Value* like)
      : b_(b), features_(f), type_(like->getType()) {}

  Builder& builder() { return b_; }
  bool is_double() const { return type_->getScalarType()->isDoubleTy(); }
  llvm::Value* number(double v) { return llvm::ConstantFP::get(type_, v); }
  llvm::Value* integer(int64_t v);  // of the width of the type
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  // Highest power first (Horner).
  llvm::Value* polynomial(llvm::Value* x, std::initializer_list<double> coefficients);
  llvm::Value* nearest(llvm::Value* x);  // to an integral value, ties to even
  llvm::Value* magnitude(llvm::Value* x);
  llvm::Value* with_sign_of(llvm::Value* magnitude, llvm::Value* sign);
  llvm::Value* clamp(llvm::Value* x, double low, double high);  // keeps NaN
  llvm::Value* bits(llvm::Value* x);
  llvm::Value* from_bits(llvm::Value* i);
  llvm::Value* to_integer(llvm::Value* integral);  // exact for small integral values
  llvm::Value* from_integer(llvm::Value* i);       // exact for small integers
  // x * 2^n, n integral and within twice the exponent range; overflows to infinity, rounds once into
  // denormals.
  llvm::Value* scale(llvm::Value* x, llvm::Value* n);

 private:
  llvm::Value* scale_native(llvm::Value* x, llvm::Value* n);
  llvm::Type* integer_type();

  Builder& b_;
  const MachineFeatures& features_;
  llvm::Type* type_;
};

}  // namespace tilegen::codegen::math
