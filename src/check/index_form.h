// Linear form and bounds of index expressions of a program that must not change.
//
// Unlike arith/, which proves facts under assumptions and may add expressions to the pool, this asks one more
// thing of a range: whether its ends are attained by some iteration, because only then is "out of range" an
// error rather than a suspicion.
#pragma once

#include <unordered_map>

#include "arith/interval.h"
#include "arith/linear_sum.h"
#include "ir/program.h"

namespace tilegen::check {

struct Bounds {
  arith::Interval range = arith::Interval::whole();
  bool attained = false;  // both ends occur, whatever the other variables are
};

class IndexForms {
 public:
  explicit IndexForms(const ir::Program& p) : pool_(p.exprs) {}

  // A variable is bound once, before anything that uses it is asked for.
  void bind(ir::VarId var, Bounds bounds) { vars_[var] = bounds; }

  const arith::Sum& linear(ir::ExprId e);          // e is i64
  int64_t coefficient(ir::ExprId e, ir::VarId v);  // of the variable in linear(e); 0: it is no term
  Bounds bounds(ir::ExprId e);                     // of any integer or bool

 private:
  arith::Sum linear_node(ir::ExprId e);
  Bounds atom_bounds(ir::ExprId atom);
  Bounds compute_atom_bounds(ir::ExprId atom);

  const ir::ExprPool& pool_;
  std::unordered_map<ir::VarId, Bounds> vars_;
  std::unordered_map<ir::ExprId, arith::Sum> sums_;
  std::unordered_map<ir::ExprId, Bounds> atoms_;
};

}  // namespace tilegen::check
