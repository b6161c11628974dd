// Perfect loop nests of a thread program: what fusion and prefetching work on.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::thread {

// Loops with one child each, the innermost holding stores only.
struct PerfectNest {
  std::vector<StmtId> loops;  // outermost first
  thread::Block stores;
};
std::optional<PerfectNest> perfect_nest(const ThreadProgram& p, StmtId id);

// Same forms and extents, loop by loop.
bool same_loops(const ThreadProgram& p, const PerfectNest& a, const PerfectNest& b);

// Of index = coefficient * var + what does not mention var; nothing where it is not of that form or
// overflows.
std::optional<int64_t> coefficient_of(const ThreadProgram& p, ir::VarId var, ir::ExprId index);

// index = sum(coefficient * loop variable) + what no loop of the nest changes, with the coefficients a mixed
// radix system: each point of the nest has an element of its own. Memory that the index reads must not change
// while the nest runs.
bool injective(const ThreadProgram& p, const PerfectNest& nest, ir::ExprId index);
// The same of variables that count from 0 to below an extent.
using VarExtents = std::vector<std::pair<ir::VarId, int64_t>>;
bool injective(const ThreadProgram& p, const VarExtents& vars, ir::ExprId index);

// Its value may be another at another place of the program: it has a load, or a native call.
bool reads_memory(const ThreadProgram& p, ir::ExprId value);

// Replaces variables by expressions of the same pool.
class VarSubstitution final : public ir::ExprRewriter {
 public:
  VarSubstitution(ir::ExprPool& pool, std::map<ir::VarId, ir::ExprId> map)
      : ExprRewriter(pool, pool), map_(std::move(map)) {}
  // An invalid id stays invalid.
  ir::ExprId operator()(ir::ExprId id) { return id ? rewrite(id) : id; }

 protected:
  ir::ExprId rewrite_var(const ir::ExprNode& n) override;

 private:
  std::map<ir::VarId, ir::ExprId> map_;
};

// The variables of `from`'s loops read as those of `to`'s.
std::map<ir::VarId, ir::ExprId> loop_variables(ThreadProgram& p, const PerfectNest& from,
                                               const PerfectNest& to);

}  // namespace tilegen::thread
