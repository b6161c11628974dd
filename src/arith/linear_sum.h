// Sum: coefficient * atom + ... + constant, the normal form of every i64 expression. An atom is an expression
// that is no sum itself: a variable, a load, a quotient, a product of variables and so on. Pure data; what
// the atoms mean is the Analyzer's business. Operations answer nothing when a coefficient overflows.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/expr.h"
#include "support/small_vector.h"

namespace tilegen::arith {

struct Term {
  ir::ExprId atom;
  int64_t coeff = 0;  // never 0
  bool operator==(const Term&) const = default;
};

using Terms = SmallVector<Term, 4>;

struct Sum {
  Terms terms;  // ascending by atom, each atom once
  int64_t constant = 0;

  static Sum of_constant(int64_t v) { return {{}, v}; }
  static Sum of_atom(ir::ExprId atom, int64_t coeff = 1) { return {{{atom, coeff}}, 0}; }

  bool is_constant() const { return terms.empty(); }
  int64_t coeff_of(ir::ExprId atom) const;
  bool operator==(const Sum&) const = default;
};

std::optional<Sum> add_scaled(const Sum& a, const Sum& b, int64_t k);  // a + k*b
std::optional<Sum> scaled(const Sum& a, int64_t k);
// Every coefficient and the constant divided by g; coefficients must be multiples, the constant is floored.
Sum divided(const Sum& a, int64_t g);
int64_t coefficient_gcd(const Sum& a);  // 0 for a constant
int64_t gcd_of(int64_t a, int64_t b);   // of magnitudes; INT64_MIN counts as its largest i64 power of two

}  // namespace tilegen::arith
