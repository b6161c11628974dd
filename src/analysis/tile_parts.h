// Copies that together fill a tile, each a part of it: pages of a cache, rows of two tensors.
//
//   copy K[cast(i64, page[b, 2 * t]) :+ 1, 0 :+ 64, 0 :+ 128] -> Ks[0 :+ 64, 0 :+ 128]
//   copy K[cast(i64, page[b, 2 * t + 1]) :+ 1, 0 :+ 64, 0 :+ 128] -> Ks[64 :+ 64, 0 :+ 128]
#pragma once

#include <string>
#include <vector>

#include "analysis/kernel_ops.h"

namespace tilegen::analysis {

// The copy writes every element of its destination.
bool fills_whole_tile(const ir::Program& p, const ir::TileOp& copy);

// What a copy writes; invalid where it is a tensor.
ValueId written_value(const KernelOp& op);

// Every op that writes the tile, in program order.
std::vector<OpId> writers_of(const KernelOps& ops, ValueId tile);

// Why the writers of a tile are not copies from tensors that fill it once, each element by one of them; empty
// when they are. Several stand in one block, at places of the tile that are known by number, and nothing
// between them accesses the tile.
std::string fill_refusal(const ir::Program& p, const KernelOps& ops, ValueId tile);

// The largest number that divides the places and extents of all copies from tensors into a part of the tile,
// along one of its dimensions; 0: there are none.
int64_t filled_together(const ir::Program& p, ir::BufferId tile, int dim);

}  // namespace tilegen::analysis
