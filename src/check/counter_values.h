// Values of expressions that constants and the counters of loops tell, at a point of a walk over iterations.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ir/program.h"

namespace tilegen::check {

class CounterValues {
 public:
  explicit CounterValues(const ir::Program& p) : p_(p) {}

  void set(ir::VarId counter, int64_t value) { values_[counter] = value; }
  // And what of a period() of it was not told.
  void forget(ir::VarId counter);
  const std::map<ir::VarId, int64_t>& known() const { return values_; }

  // The condition is so wherever it stands, and its opposite is not.
  void decide(ir::ExprId condition, bool value) { decided_[condition] = value; }

  // Nothing: it depends on something else.
  std::optional<int64_t> eval(ir::ExprId e);

  // Steps of the counter after which all of these have the same values again, whatever it began with. What
  // never has, or too late, is not told until the counter is forgotten.
  int64_t period(const std::vector<ir::ExprId>& exprs, ir::VarId counter);

 private:
  // What an expression becomes as the counter counts: `by` more after `period` steps.
  struct Advance {
    int64_t period = 1, by = 0;
  };
  std::optional<Advance> advance(ir::ExprId e, ir::VarId counter);
  std::optional<Advance> find_advance(ir::ExprId e, ir::VarId counter);
  std::optional<ir::ScalarValue> value(ir::ExprId e);
  std::optional<ir::ScalarValue> find_value(ir::ExprId e);

  const ir::Program& p_;
  std::map<ir::VarId, int64_t> values_;
  std::map<ir::ExprId, bool> decided_;
  std::map<ir::VarId, std::set<ir::ExprId>> untold_;
  // An expression may stand in others many times: each is asked once.
  std::map<ir::ExprId, std::optional<Advance>> advances_;
  std::map<ir::ExprId, std::optional<ir::ScalarValue>> evaluated_;
};

}  // namespace tilegen::check
