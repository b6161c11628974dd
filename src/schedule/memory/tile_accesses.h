// How the threads of a block touch a shared tile: the accesses of its warps, element by element, before it is
// settled where an element lies.
//
// requires: the iteration layouts and vector widths that were planned for the ops.
// ensures: for every op that reads or writes the value, the requests that its warps make, as lowering walks
//   the iteration: threads that hold copies of a point read it and one of them writes; what is padding or
//   outside the tile is not touched. Of many requests a part is listed, evenly spread, and weighed for all.
// why here: iterations are planned by then; the layouts of tiles that threads alone touch follow from them.
//   Elements beside each other that a point touches are one access (`joined`), as where lowering joins them.
// refuses: nothing. An index that an element of memory tells is known to nobody: accesses by it are left out.
//   Offsets that are the same for all threads count as 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

// The first element that each active lane of a warp touches, of consecutive ones along its rows.
struct TileRequest {
  std::vector<int64_t> indices;  // one index of the tile for each lane, one after the other
  int64_t elements = 1;          // consecutive ones of a lane
  double weight = 1;             // requests that it stands for
};

struct TileAccesses {
  std::vector<TileRequest> requests;
  int64_t widest = 1;  // elements that one access moves: they stay together, at multiples of as many
  bool apart = false;  // elements that lowering could join are counted one by one
};

// The dimension along which rows run: the last of more than one element.
size_t row_dim(std::span<const int64_t> shape);

TileAccesses accesses_of_tile(const ir::Program& p, const analysis::KernelOps& ops, analysis::ValueId value,
                              analysis::ValuePlans values, analysis::OpPlans plans, const target::Target& t,
                              bool joined = true);

}  // namespace tilegen::schedule
