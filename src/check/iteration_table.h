// Enumerates a small parallel loop: which element each iteration touches through one access.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arith/linear_sum.h"
#include "check/context.h"
#include "check/expr_walk.h"
#include "check/index_form.h"
#include "ir/program.h"
#include "support/limits.h"

namespace tilegen::check {

// An `if` around an access inside the loop.
struct Condition {
  ir::ExprId expr;
  bool holds = true;
};

// One load or store of a parallel loop's body.
struct Access {
  ir::StmtId stmt;
  ir::BufferId buffer;
  std::span<const ir::ExprId> indices;
  bool is_write = false;
  std::vector<Condition> conditions;
  bool is_atomic = false;
};

constexpr int64_t kMaxEnumeratedIterations = 65536;
constexpr size_t kMaxEnumeratedRank = 8;

struct TouchedElement {
  std::array<int64_t, kMaxEnumeratedRank> index{};
  uint32_t iteration = 0;
  bool operator==(const TouchedElement&) const = default;
  bool operator<(const TouchedElement& o) const {
    return index != o.index ? index < o.index : iteration < o.iteration;
  }
};

// Working memory as long as the expression pool, kept across loops.
struct Scratch {
  explicit Scratch(CheckContext& ctx) : walk(ctx.program), values(ctx.program.exprs.size()), stop(ctx.stop) {}
  ExprWalk walk;
  std::vector<ir::ScalarValue> values;  // by ExprId
  StopCheck& stop;
};

// Evaluates expressions whose only leaves are constants and the variables of one parallel loop.
class IterationTable {
 public:
  IterationTable(const ir::Program& p, IndexForms& forms, Scratch& scratch, const ir::Loop& loop);

  int64_t iterations() const { return iterations_; }
  bool depends_on_loop(ir::ExprId e) const;

  // The part of an index that does not change inside the loop: two accesses are comparable when theirs are
  // equal.
  std::vector<arith::Sum> fixed_part(const Access& access);
  bool has_fixed_part(const Access& access);
  // Elements touched, fixed parts left out, sorted. Nothing when an index or a condition that depends on the
  // loop also depends on something else, when the work is too large, or when the caller asks to stop.
  std::optional<std::vector<TouchedElement>> touched(const Access& access);

  std::string iteration_text(uint32_t iteration) const;  // "i=0, j=1"

 private:
  bool collect(ir::ExprId e, std::vector<ir::ExprId>* order) const;
  void evaluate(const std::vector<ir::ExprId>& order);
  bool advance();
  bool is_loop_var(const ir::ExprNode& n) const;

  const ir::Program& p_;
  IndexForms& forms_;
  Scratch& scratch_;
  const ir::Loop& loop_;
  std::vector<int64_t> extents_;
  std::vector<int64_t> point_;
  int64_t iterations_ = 1;
};

}  // namespace tilegen::check
