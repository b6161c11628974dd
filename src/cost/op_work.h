// Work of one op of a planned kernel: what a block's threads, matrix units and copy engine do for it once.
//
// requires: a kernel and the schedule that was planned for it on the target.
// ensures: every op has a work; work that several threads repeat counts as often as it is done.
// why here: engines, layouts and vectors are decided; nothing is lowered.
// refuses: nothing.
#pragma once

#include "analysis/kernel_ops.h"
#include "cost/sizes.h"
#include "cost/work.h"
#include "target/target.h"

namespace tilegen::cost {

struct PlannedKernel {
  const ir::Program& p;
  const analysis::KernelOps& ops;
  const plan::KernelSchedule& schedule;
  const target::Target& t;
  const SizedProgram& sizes;

  const plan::OpPlan& plan(const analysis::KernelOp& op) const { return schedule.ops[ops.id_of(op).index()]; }
  const plan::ValuePlan& value(analysis::ValueId v) const { return schedule.values[v.index()]; }
  int64_t threads() const { return *schedule.threads; }
};

// Who does an op, and whether others go on beside it.
enum class OpPlace : uint8_t {
  threads,
  units,      // asynchronous products
  engine,     // copies of a producer, or out of staged tiles
  background  // asynchronous copies of threads
};

struct OpWork {
  OpPlace place = OpPlace::threads;
  Work work;
  bool reads_tensor = false;  // threads wait for it
  // Requests of warps, where each is served as its bytes could be: lines of tensors, wavefronts of shared
  // memory.
  double least_lines = 0, least_wavefronts = 0;
};
OpWork op_work(const PlannedKernel& k, const analysis::KernelOp& op);
// Warpgroups that would do the op's work, of which one does: they have the loop's iterations by turns.
int64_t warpgroups_by_turns(const PlannedKernel& k, const analysis::KernelOp& op);

}  // namespace tilegen::cost
