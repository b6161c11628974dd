// Which copies of a pipelined loop may run iterations ahead of the rest of its body.
#pragma once

#include <string>
#include <vector>

#include "analysis/dependence.h"

namespace tilegen::analysis {

// Ops anywhere inside a loop, in program order.
std::vector<const KernelOp*> ops_inside(const ir::Program& p, const KernelOps& ops, const ir::Loop& loop);

// From global to shared memory.
bool is_tile_load(const ir::Program& p, const KernelOp& op);

// The copy writes every element of its destination.
bool fills_whole_tile(const ir::Program& p, const ir::TileOp& copy);

// Why the tile load may not run ahead; empty when it may: it depends on nothing computed in the loop, stands
// directly in the loop's body, fills its tile, and the tile is read after it and in this loop only.
std::string held_back(const ir::Program& p, const KernelOps& ops, LoopDependences& dependences,
                      ir::StmtId loop, const KernelOp& op);

}  // namespace tilegen::analysis
