// Blocks of threads: statements that every thread of the block runs, one behind the other for all of them.
//
//   threads w, lane in 4, 32 {                  parallel w, lane in 4, 32 { given[w, lane] = a[w, lane] }
//     let x = a[w, lane]                 ->     ... { taken[w, lane] = given[w, lane ^ 1] }
//     b[w, lane] = shuffle_xor(x, 1)            ... { b[w, lane] = taken[w, lane] }
//   }
//
// The block is cut into parts where threads meet: at exchanges between lanes, at barriers, and around the ifs
// and serial loops that hold such, which are the same for all threads. A part is a parallel loop of which
// thread t runs point t, by its annotation. Names that a later part uses are kept in fragments, of which each
// thread has its own element, so an exchange is a load of another point's.
//
// requires: a block that stands outside of parallel and pipelined loops, whose extents multiply to the
// kernel's threads. ensures: parallel loops; what the one stores the next one sees.
// why here: parallel loops have one meaning on all executors, and race checks that refuse what threads do to
// each other between two meetings.
// refuses: barriers under conditions that threads may see differently, exchanges under those that lanes of a
//   group may. What groups see differently is kept, and guards what stands in the if.
#pragma once

#include <algorithm>
#include <span>

#include "ir/program.h"

namespace tilegen::ir {

// Point number t is run by thread t, in one form of the code. `elements`: a further dimension, of which the
// thread runs all points; 0: there is none.
Annotations in_thread_order(std::span<const int64_t> extents, const SourceLocation& location,
                            int64_t elements = 0);

// Variables of the block's head become those of the parallel loop of a part.
class OfPart : public ExprRewriter {
 public:
  OfPart(ExprPool& pool, const std::vector<VarId>& from, const std::vector<VarId>& to)
      : ExprRewriter(pool, pool), from_(from), to_vars_(to) {}

 protected:
  ExprId rewrite_var(const ExprNode& n) override {
    const auto it = std::find(from_.begin(), from_.end(), n.var());
    return to_->var(it == from_.end() ? n.var() : to_vars_[static_cast<size_t>(it - from_.begin())], n.type);
  }

 private:
  const std::vector<VarId>&from_, &to_vars_;
};

// Why a block of threads of these extents cannot stand in a kernel of so many threads, inside these loops and
// ifs; nothing where it can.
std::optional<Diagnostic> threads_refusal(const Program& p, std::span<const int64_t> extents,
                                          std::span<const StmtId> around);

}  // namespace tilegen::ir
