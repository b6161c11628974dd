// Values that docs/numerics.md leaves open, moved as far as it allows.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data.h"
#include "ir/expr.h"
#include "ops/reference_sink.h"
#include "sanitized_run.h"

namespace tilegen::differential {

class OpenRounding {
 public:
  OpenRounding(Rounding rounding, uint64_t seed) : rounding_(rounding), random_(seed) {}

  bool moves() const { return rounding_ != Rounding::reference; }
  // Results of one operation on `a` and, of two operands, `b`.
  double unary(ir::ExprOp op, ir::DType type, double a, double result);
  double binary(ir::ExprOp op, ir::DType type, double a, double b, double result);
  // Of the library's functions with native text (docs/numerics.md, "Fast forms"): open beyond the arguments
  // of which all of them have a bound.
  double fast_form(ir::DType type, std::span<const double> arguments, double result);
  // `value` moved by up to `distance`; a zero has either sign. Infinite: partial sums may overflow in one
  // order and not in another.
  double moved(ir::DType type, double value, double distance);

 private:
  double either_zero(double value);

  Rounding rounding_;
  Random random_;
};

// What a sum's error is made of, gathered while its operands are read.
struct Terms {
  double largest = 0;
  bool whole = true;  // whole numbers only
  bool tf32 = true;   // exact in tf32
  void add(double value);
};

// Errors of a gemm of `k` products and of a reduce by sum of `count` elements that stay within the contract;
// 0: exact, infinite: partial sums may overflow.
double gemm_error(ir::DType operand, ir::DType result, bool tf32, double k, const Terms& a, const Terms& b,
                  const Terms& old);
double sum_error(ir::DType type, double count, const Terms& terms);
// What is open of a sparse product, or empty: two equal places in front of anything but zeros, and an
// infinity or NaN that may meet zeros which are left out.
std::string open_sparse_terms(const ir::TileOp& op, ops::ReferenceSink& sink);

}  // namespace tilegen::differential
