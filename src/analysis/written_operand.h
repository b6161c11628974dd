// Operands of warpgroup products that threads write to shared memory, as no copy engine brings them: what
// their writers and the products have to wait for.
//
// requires: engines, layouts and iterations of all ops. ensures: for each such tile its writers and its
// products, and whether warpgroups hand it to each other. why here: planning asks for places in memory and
// for turns, lowering for barriers.
#pragma once

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::analysis {

struct ThreadWrittenOperand {
  ValueId value;
  std::vector<OpId> writers, products;  // ops, in program order
  // One op writes it, each element by the same thread whenever it runs, and but for products nothing else
  // touches the tile.
  bool lone = false;
  // Lone, and a warpgroup reads what its own threads write: the warpgroup meets, not all computing threads.
  bool own_rows = false;
};

// Something in the loop writes it.
bool written_inside(const ir::Program& p, const KernelOps& ops, const ThreadWrittenOperand& w,
                    const ir::Loop& loop);

// Iterations may have slots of their own, in turn: each overwrites all of the tile before its products read
// it, and none of them lags. Not in a loop of one stage: products go on beside the next iteration's writing
// then, and what they read of the loop's other tiles has the slot that this iteration waits for.
bool may_double_buffer(const ir::Program& p, const KernelOps& ops, const ThreadWrittenOperand& w,
                       const ir::Loop& loop, const plan::LoopPlan& plan);

// `plans` are those of `ops`, one by one.
std::vector<ThreadWrittenOperand> written_operands(const ir::Program& p, const KernelOps& ops,
                                                   const target::Target& t, int64_t threads, OpPlans plans,
                                                   ValuePlans values,
                                                   const std::vector<plan::ConversionPlan>& conversions);

}  // namespace tilegen::analysis
