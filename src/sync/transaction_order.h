// Arrivals at transaction barriers that a program writes itself, and the waits for them: what the one comes
// before, the other comes behind.
//
//   loop k {                                                  a wait of iteration k is for the arrival of
//     if 128 <= t { wait empty[k % 3]; ring[k % 3] = ..;      iteration k - 3 at the same barrier where that
//                   arrive full[k % 3] }                      stands behind it in the body, and for that of
//     if t < 128  { wait full[k % 3]; .. = ring[k % 3];       its own iteration where it stands in front
//                   arrive empty[k % 3] }
//   }
//
// At a barrier that the program names who waits arrives itself, and completes the phase: all arrivals in
// front of it come before.
//
// requires: phases as check/barrier_check.cpp proves them: a wait is for the newest phase of its barrier that
// the statements before it complete, and that one has all arrivals that stand before.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "thread/thread_program.h"

namespace tilegen::sync {

// Warps of the block that meet at a barrier of their own, or do the same.
struct WarpRange {
  int64_t first = 0, count = 0;
  bool holds(const WarpRange& w) const { return first <= w.first && w.first + w.count <= first + count; }
};

class TransactionOrder {
 public:
  // An arrival or a wait of these warps.
  struct Point {
    thread::StmtId stmt;
    bool arrives = false, waits = false;  // both: who meets at a named barrier
    bool copies = false;                  // asynchronous ones are done by then
    bool named = false;                   // at a barrier of the machine that the program names: its number
    int barriers = -1;
    ir::ExprId index;
    WarpRange warps;
    ir::VarId loop;       // the innermost around; invalid: none
    int64_t trips = -1;   // of it; -1: not a constant
    int64_t most = -1;    // of it, where a fact bounds them; else -1
    bool always = false;  // every iteration of it comes by, where the choices around are so
    size_t position = 0;  // in the order of the statements
  };

  // Of the arrays of barriers that threads alone arrive at; a program with roles has none of its own.
  // `named`: of barriers that the program names, too.
  explicit TransactionOrder(const thread::ThreadProgram& p, bool named = true);
  const Point* find(thread::StmtId s) const;
  // A condition around arrivals or waits that is one value as long as the block runs: which one it is, and
  // whether it is its opposite.
  struct Choice {
    uint32_t bit = 0;
    bool opposite = false;
  };
  std::optional<Choice> choice_of(ir::ExprId condition) const;
  // It names the thread and nothing else.
  bool is_of_threads(ir::ExprId condition) const;
  bool empty() const { return points_.empty(); }
  bool inside(ir::VarId loop) const { return loops_.count(loop) > 0; }

  // How many iterations before the wait's own one the arrival stands that it is for, or a newer one; nothing:
  // it cannot be told.
  std::optional<int64_t> iterations_back(const Point& arrival, const Point& wait, int64_t most) const;
  // No arrival or wait at a transaction barrier is of some of these warps and not of the others.
  bool is_one_party(const WarpRange& warps) const;
  int64_t most_barriers() const { return most_; }  // of an array

 private:
  struct Around {
    ir::VarId loop;
    int64_t trips = -1, most = -1;
    bool always = true;
    std::vector<std::pair<ir::ExprId, bool>> of_threads;  // conditions, and whether they hold
  };
  void collect(const thread::Block& b, const Around& around);
  void add(const Around& around, Point point);
  WarpRange warps_of(const Around& around) const;
  bool is_fixed(ir::ExprId condition) const;
  int64_t most_trips(ir::ExprId extent) const;
  int64_t period_of(const Point& arrival, const Point& wait) const;

  const thread::ThreadProgram& p_;
  const bool named_;
  std::vector<Point> points_;
  std::map<thread::StmtId, size_t> by_stmt_;
  std::set<ir::VarId> loops_;  // around transaction barriers
  std::vector<ir::ExprId> choices_;
  size_t position_ = 0;
  int64_t most_ = 0;
};

}  // namespace tilegen::sync
