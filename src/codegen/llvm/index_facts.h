// What is known of the integer expressions of a thread program: ranges of its variables from the launch
// limits, the facts of dims and the extents of loops, and through them ranges and linear forms of everything
// built on them.
//
// Owns a copy of the program's expressions, because linear forms speak of expressions that are built on the
// way. Nodes of the pool may move whenever a question is asked: copy a node before asking.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "arith/interval.h"
#include "arith/prove.h"
#include "thread/thread_program.h"

namespace tilegen::codegen {

struct GridLimits {
  int64_t fastest, others;  // most blocks along a dimension of the grid
};
constexpr GridLimits kHostGrid{thread::kMaxIterations, thread::kMaxIterations};
constexpr GridLimits kNvidiaGrid{INT32_MAX, 65535};
constexpr GridLimits kAmdGrid{INT32_MAX, 65535};

class IndexFacts {
 public:
  IndexFacts(const thread::ThreadProgram& program, GridLimits limits);

  const ir::ExprPool& pool() const { return pool_; }
  arith::Interval range(ir::ExprId e);
  arith::Interval range_of_var(ir::VarId v) const;
  // The value lies within i32 (u32 values beyond do not count).
  bool narrow(ir::ExprId e);
  const arith::Affine& affine(ir::ExprId e);  // of an i64 expression
  ir::ExprId simplified(ir::ExprId e);
  bool depends_on(ir::ExprId e, ir::VarId v);
  bool is_dim(ir::ExprId e) const;  // a variable that is a dim
  // Largest constant known to divide the sum; 0: it is 0.
  int64_t divisor(const arith::Affine& sum);
  // An integer expression's value, where `known` tells those of its variables.
  using KnownVar = std::function<std::optional<int64_t>(ir::VarId)>;
  std::optional<int64_t> value_where(ir::ExprId e, const KnownVar& known) const;

 private:
  void bind_loops(const thread::Block& body);
  void assume_points();
  std::vector<ir::ExprId> factors(ir::ExprId product) const;
  int64_t guarded_divisor(ir::VarId v) const;
  void bind_extents(const thread::Guard& g);
  void bind(ir::VarId v, int64_t lo, int64_t hi, int64_t divisor);

  const thread::ThreadProgram& program_;
  ir::ExprPool pool_;
  arith::Context context_;
  std::unordered_map<ir::ExprId, arith::Interval> ranges_;
  std::unordered_map<ir::ExprId, arith::Affine> affines_;
  std::unordered_map<ir::ExprId, ir::ExprId> simplified_;
  ir::VarId asked_;  // the variable `dependent_` speaks of
  std::unordered_map<ir::ExprId, bool> dependent_;
};

}  // namespace tilegen::codegen
