// A block's way through a kernel: what it takes of each pipe, and how long it takes alone.
#pragma once

#include <map>

#include "cost/op_work.h"

namespace tilegen::cost {

// Both take their time; the larger `overlap` is, the more of one hides behind the other.
double together(double a, double b, double overlap);

// A part of a block's way.
struct Span {
  double serial = 0;   // cycles, where the block is alone on a multiprocessor
  double late = 0;     // of serial, for what iterations behind the first load
  double units = 0;    // cycles of the multiprocessor's units for asynchronous products
  double threads = 0;  // cycles of its pipes for threads, op after op
  Work work;
  Span& operator+=(const Span& more);
  Span& operator*=(double times);
  // Cycles of the multiprocessor where so many groups of warps each go their way: products and what threads
  // do with them take turns, ops of several use different pipes at once.
  double busy(double groups) const;
};

// A loop whose tiles are taken to be asked for so many iterations ahead at least.
struct Ahead {
  ir::StmtId loop;
  int64_t iterations = 0;
  bool threads = false;  // what threads load themselves, too
};

class KernelWalk {
 public:
  // `works`: by op. `cycles_of_byte`: of a tensor, on its way to a multiprocessor that shares memories with
  // others.
  KernelWalk(const PlannedKernel& k, const ir::Kernel& kernel, const std::vector<OpWork>& works,
             double cycles_of_byte, const Ahead& ahead);

  // The block whose indices `k.sizes` has; ops count as done `weight` times.
  Span block(double weight);

  const std::vector<double>& times() const { return times_; }  // by op
  // Of a block that is as one that was walked: its ops' times.
  void add_times(const std::vector<double>& more) {
    for (size_t i = 0; i < times_.size(); ++i) times_[i] += more[i];
  }
  bool known() const { return known_; }  // every loop's length
  // Cycles that the sums of blocks take to meet in a workspace, beside which nothing runs.
  double meeting() const { return meeting_; }

 private:
  // What the statements of one body do, by who does it.
  struct Parts;
  struct Slots {
    bool produced = false;
    int64_t slots = 0;
    double pipelines = 0;
  };

  Span block_in_parts(double weight);
  bool gather(ir::StmtId id, double weight, Span& span);
  double own_serial(const Work& w, double actors) const;
  double product_serial(const Work& w) const;
  Span walk(const ir::Block& body, double weight, ir::StmtId loop);
  void statement(ir::StmtId id, double weight, Parts& parts);
  void loop(ir::StmtId id, double weight, Parts& parts);
  void op(analysis::OpId id, double weight, Parts& parts);
  Span combine(const Parts& parts, ir::StmtId loop);
  double late_in_one_slot(const ir::Loop& loop) const;
  bool persistent() const;
  bool through_registers(const plan::LoopPlan& l) const;
  const plan::LoopPlan* find_plan(const ir::Loop& loop) const;
  Slots slots_of(const plan::LoopPlan& l) const;

  const PlannedKernel& k_;
  const ir::Kernel& kernel_;
  const std::vector<OpWork>& works_;
  const double cycles_of_byte_;
  const Ahead ahead_;
  std::map<ir::StmtId, analysis::OpId> of_;
  std::vector<double> times_;
  double warpgroups_ = 1;
  double fill_ = 0;  // until the first tile of the loop that was walked last is there
  double meeting_ = 0;
  bool known_ = true;
};

}  // namespace tilegen::cost
