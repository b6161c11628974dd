// What a loop does while a tile of it lies idle: behind the last op of an iteration that reads its contents
// and in front of the first one of the next.
//
// requires: ops of a loop in program order. ensures: with one slot for the tile its next contents can come
// beside the ops that are returned, and beside nothing else.
// why here: planning asks whether a producer has anything to run beside, the cost model how long that takes.
#pragma once

#include <vector>

#include "analysis/kernel_ops.h"

namespace tilegen::analysis {

// `tile`: filled in the body of `loop`, and read in it.
std::vector<const KernelOp*> ops_beside_idle_tile(const ir::Program& p, const KernelOps& ops,
                                                  const ir::Loop& loop, ValueId tile);

}  // namespace tilegen::analysis
