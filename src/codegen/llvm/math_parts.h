// Pieces the functions of math.h are made of. All take and give values of one floating type, scalar or
// vector.
#pragma once

#include <initializer_list>

#include "codegen/llvm/math.h"

namespace tilegen::codegen::math {

// exp from arithmetic alone, which is more accurate than instructions that approximate it.
llvm::Value* emit_exp_polynomial(Builder& b, const MachineFeatures& f, llvm::Value* x);

// (tail + 1) * 2^n with n integral.
struct Power {
  llvm::Value *tail = nullptr, *n = nullptr;
};
class Parts;
// e^x. x beyond the exponent range is clamped to where the power is 0 or infinite.
Power exp_power(Parts& p, llvm::Value* x);
// 2^x, |x| <= 1/2: tail alone.
llvm::Value* exp2_tail(Parts& p, llvm::Value* x);

// The unevaluated sum of two numbers, |low| at most half a unit in the last place of high.
struct Pair {
  llvm::Value *high = nullptr, *low = nullptr;
};

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
  // a * b - product, exact where that is a number of the type; `product` is a * b rounded.
  llvm::Value* residual(llvm::Value* a, llvm::Value* b, llvm::Value* product);
  // a * b rounded, whatever it is added to: no back end makes a fused operation of it.
  llvm::Value* rounded_product(llvm::Value* a, llvm::Value* b);
  Pair sum(llvm::Value* a, llvm::Value* b);          // exact
  Pair sum_ordered(llvm::Value* a, llvm::Value* b);  // exact where |a| >= |b| or a is 0
  Pair product(llvm::Value* a, llvm::Value* b);      // exact but for underflow
  Pair product(Pair a, Pair b);
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
  llvm::Value* power_of_two(llvm::Value* exponent);  // of an integer exponent of a normal number
  llvm::Value* trunc(llvm::Value* x);
  llvm::Value* select(llvm::Value* condition, llvm::Value* a, llvm::Value* b) {
    return b_.CreateSelect(condition, a, b);
  }
  llvm::Value* negated_if(llvm::Value* condition, llvm::Value* x);
  llvm::Type* integer_type();
  llvm::Type* integer_type(unsigned bits);

 private:
  llvm::Value* scale_native(llvm::Value* x, llvm::Value* n);

  Builder& b_;
  const MachineFeatures& features_;
  llvm::Type* type_;
};

}  // namespace tilegen::codegen::math
