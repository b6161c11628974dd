// Which copies of a pipelined loop may run iterations ahead of the rest of its body. A parallel loop is one
// that moves elements of a tensor to a tile, at places that an index may name:
//
//   parallel i, j in 128, 64 { As[i, j] = A[cast(i64, ids[i]), ko * 64 + j] }
#pragma once

#include <string>
#include <vector>

#include "analysis/dependence.h"

namespace tilegen::analysis {

// Ops anywhere inside a loop, in program order.
std::vector<const KernelOp*> ops_inside(const ir::Program& p, const KernelOps& ops, const ir::Loop& loop);

// From global to shared memory.
bool is_tile_load(const ir::Program& p, const KernelOp& op);

// From global memory to a fragment.
bool is_fragment_load(const ir::Program& p, const KernelOp& op);

// The store of a parallel loop that does nothing but move elements of a tensor, as they are, to a tile in
// shared memory that it does not read; null for other ops. Of an asynchronous loop it may be guarded.
const ir::Store* moving_store(const ir::Program& p, const KernelOp& op);

// Why the load of a tile or fragment may not run ahead; empty when it may: it depends on nothing computed in
// the loop, stands directly in the loop's body, fills its tile by itself or with others of which the same is
// true (tile_parts.h), and the tile is read after it and in this loop only.
std::string held_back(const ir::Program& p, const KernelOps& ops, LoopDependences& dependences,
                      ir::StmtId loop, const KernelOp& op);

}  // namespace tilegen::analysis
