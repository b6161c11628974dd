// Context: what is known about the variables of an expression pool at one point of a program.
//
// i64 arithmetic wraps. A rule that holds over the mathematical integers only is applied where the ranges of
// the variables prove that nothing wraps: what is bound tightly is told most about. A variable without bounds
// is any i64 value.
//
// Bounded: every question to simplify.h or prove.h has a step budget; when it is used up the answer is
// "unknown" or the expression as it was. Answers are remembered until a fact changes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <variant>
#include <vector>

#include "arith/interval.h"
#include "arith/linear_sum.h"
#include "ir/expr.h"

namespace tilegen::arith {

class Analyzer;

struct VarFacts {
  Interval range;
  int64_t divisor = 1;  // > 0
};

class Context {
 public:
  explicit Context(ir::ExprPool& pool);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  ir::ExprPool& pool() const { return *pool_; }

  // lo <= var <= hi and var % divisor == 0. Replaces what was bound before. An
  // empty range (a loop of no trips) is legal: its body never runs, so any answer is true there.
  void bind(ir::VarId var, int64_t lo, int64_t hi, int64_t divisor = 1);

  // A bool expression that holds from here on. Conjunctions are taken apart; i64 comparisons become linear
  // facts, `x % c == 0` a divisor of x; anything else is known true only where it appears as it is.
  void assume(ir::ExprId condition);

  // Undoes every bind and assume since mark().
  using Mark = size_t;
  Mark mark() const { return undo_.size(); }
  void rollback(Mark mark);

  std::optional<VarFacts> facts_of(ir::VarId var) const;
  // What assumptions say of atoms and of conditions as they stand.
  std::span<const Sum> non_negative_sums() const { return linear_; }
  std::optional<Interval> assumed_bounds(ir::ExprId atom) const { return found(bounds_, atom); }
  std::optional<int64_t> assumed_divisor(ir::ExprId atom) const { return found(divisors_, atom); }
  std::optional<bool> assumed_truth(ir::ExprId condition) const { return found(truths_, condition); }

  // Steps one question may take.
  void set_step_budget(int64_t steps) { step_budget_ = steps; }
  int64_t step_budget() const { return step_budget_; }

  Analyzer& analyzer() { return *analyzer_; }  // internal to src/arith

 private:
  template <class Value>
  static std::optional<Value> found(const std::unordered_map<ir::ExprId, Value>& facts, ir::ExprId of) {
    const auto it = facts.find(of);
    return it == facts.end() ? std::nullopt : std::optional<Value>(it->second);
  }

  struct UndoVar { ir::VarId var; std::optional<VarFacts> before; };
  struct UndoLinear {};
  struct UndoBounds { ir::ExprId atom; std::optional<Interval> before; };
  struct UndoDivisor { ir::ExprId atom; std::optional<int64_t> before; };
  struct UndoTruth { ir::ExprId condition; };
  using Undo = std::variant<UndoVar, UndoLinear, UndoBounds, UndoDivisor, UndoTruth>;

  void assume_simplified(ir::ExprId condition, int depth);
  void add_linear(const Sum& non_negative);
  void set_bounds(ir::ExprId atom, Interval bounds);
  void set_divisor(ir::ExprId atom, int64_t divisor);
  void set_truth(ir::ExprId condition, bool value);
  void undo(const Undo& entry);

  ir::ExprPool* pool_;
  int64_t step_budget_ = 60000;
  std::unordered_map<ir::VarId, VarFacts> vars_;
  std::vector<Sum> linear_;                                // each >= 0
  std::unordered_map<ir::ExprId, Interval> bounds_;        // of atoms, from facts
  std::unordered_map<ir::ExprId, int64_t> divisors_;       // of atoms, from facts
  std::unordered_map<ir::ExprId, bool> truths_;            // of conditions as they stand
  std::vector<Undo> undo_;
  std::unique_ptr<Analyzer> analyzer_;
};

}  // namespace tilegen::arith
