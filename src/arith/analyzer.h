// Analyzer: the engine after simplify.h and prove.h, one per Context, with the answers it remembers.
//
// Everything rests on linear(): the normal form of an i64 expression as a Sum. Terms that speak of "exact"
// sums mean that the i64 value equals the sum over the mathematical integers, that is, nothing wraps (see
// context.h); division and comparison rules are valid for exact sums only.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "arith/context.h"
#include "support/memo_table.h"

namespace tilegen::arith {

class Analyzer {
 public:
  explicit Analyzer(Context& ctx) : ctx_(ctx), pool_(ctx.pool()) {}

  // Every question enters through a Question, which hands out the step budget to the outermost one.
  class Question {
   public:
    explicit Question(Analyzer& a);
    ~Question() { analyzer_.open_--; }
    Question(const Question&) = delete;

   private:
    Analyzer& analyzer_;
  };
  bool exhausted() const { return steps_ <= 0; }
  void forget();  // facts changed

  ir::ExprId simplify(ir::ExprId e);
  Sum linear(ir::ExprId e);  // e is i64
  ir::ExprId build(const Sum& s);

  // Ranges and divisors.
  Interval range(ir::ExprId e);      // of any integer or bool
  Interval sum_range(const Sum& s);  // over the mathematical integers
  bool is_exact(const Sum& s);
  bool is_exact_product(ir::ExprId atom);  // or no product
  int64_t divisor(const Sum& s);           // 0 for the constant 0
  int64_t atom_divisor(ir::ExprId atom);
  Sum exact_sum(ir::ExprId e);  // linear(e), or e as one atom when that may wrap
  std::optional<Sum> exact_difference(ir::ExprId a, ir::ExprId b);  // a - b

  // Proofs about exact sums.
  bool non_negative(const Sum& s, int depth = 3);
  Sum tightened(const Sum& s);  // same truth of "s >= 0", constant rounded by the divisor
  // same truth of "s >= 0", fewer terms; nothing when that is hopeless
  std::optional<Sum> reduced_guard(Sum s);

  std::vector<ir::ExprId> factors(ir::ExprId atom) const;  // of a product atom, else the atom itself
  ir::ExprId product(std::vector<ir::ExprId> factors);

 private:
  struct DigitView;  // (value // base) % modulus as an atom

  bool step() { return --steps_ > 0; }

  // analyzer.cpp
  Sum linear_node(ir::ExprId e);
  Sum opaque(ir::ExprId e);                             // e as one atom, or its value when that is known
  Sum atom_unless_folded(ir::ExprOp op, ir::ExprId e);  // e was built as `op`; the pool may have folded it
  Sum combine(const Sum& a, const Sum& b, int64_t k, ir::ExprId fallback);
  Sum multiply(const Sum& a, const Sum& b);
  Sum linear_extremum(ir::ExprOp op, ir::ExprId a, ir::ExprId b);
  Sum linear_shift(const ir::ExprNode& n);
  Sum linear_cast(const ir::ExprNode& n);
  ir::ExprId simplify_load(ir::ExprId e);

  // bits.cpp
  Sum linear_bits(ir::ExprOp op, const Sum& a, const Sum& b);
  Sum linear_mask(const Sum& a, int64_t mask);
  std::optional<Sum> split_low_bits(const Sum& a, const Sum& b);
  std::optional<Sum> split_high_bits(const Sum& a, const Sum& b);

  // division.cpp
  Sum quotient(const Sum& a, int64_t c);
  Sum remainder(const Sum& a, int64_t c);
  Sum without_multiples(const Sum& s, int64_t c);
  std::optional<Sum> irreducible_remainder(const Sum& rest, int64_t c, bool power_of_two);
  Sum symbolic_division(ir::ExprOp op, const Sum& a, const Sum& b);
  bool drop_low_part(Sum& rest, int64_t c, Sum* dropped);
  bool unwrap_remainders(Sum& rest, int64_t c);
  std::optional<Sum> nested_quotient(const Sum& rest, int64_t c);
  std::optional<ir::ExprId> without_factor(ir::ExprId atom, const std::vector<ir::ExprId>& factor);

  // digits.cpp
  Sum joined(Sum s);
  bool join_exact_quotient(Sum& s);
  bool join_digits(Sum& s);
  bool join_value_and_quotient(Sum& s);
  std::optional<DigitView> digit_view(ir::ExprId atom) const;

  // range.cpp
  Interval structural_range(ir::ExprId e);
  Interval integer_range(const ir::ExprNode& n);
  Interval atom_range(ir::ExprId atom);
  int64_t structural_divisor(ir::ExprId atom);

  // logic.cpp
  ir::ExprId simplify_bool(ir::ExprId e);
  ir::ExprId simplify_compare(ir::ExprOp op, ir::ExprId a, ir::ExprId b);
  ir::ExprId compare_sums(ir::ExprOp op, ir::ExprId a, ir::ExprId b);
  ir::ExprId order_from_guard(const Sum& s, ir::ExprId fallback);
  ir::ExprId equality_from_difference(ir::ExprOp op, Sum s, ir::ExprId fallback);
  ir::ExprId simplify_junction(ir::ExprOp op, ir::ExprId e);
  std::optional<Sum> guard_of(ir::ExprId condition);
  bool implies(ir::ExprId a, ir::ExprId b);
  ir::ExprId negated(ir::ExprId condition);

  // proof.cpp
  bool proved_by_facts(const Sum& s, int depth);
  bool proved_by_atoms(const Sum& s, int depth);

  Context& ctx_;
  ir::ExprPool& pool_;
  int open_ = 0;   // questions being answered
  int depth_ = 0;  // of recursion
  int64_t steps_ = 0;
  std::vector<ir::ExprId> open_sums_;  // being worked out, the innermost last
  MemoTable<ir::ExprId, Sum> sums_;
  MemoTable<ir::ExprId, ir::ExprId> simplified_;
  MemoTable<ir::ExprId, Interval> ranges_;
  MemoTable<ir::ExprId, int64_t> atom_divisors_;
};

}  // namespace tilegen::arith
