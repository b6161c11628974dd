// Asynchronous copies that fill a tile in the order of lanes (thread::Machine::copies_in_lane_order): a lane
// moves one word, and the words of a warp lie side by side in shared memory. Which element a place holds is
// the tile's layout's business: a lane reads the tensor where that says, so that a tile may be swizzled as
// its product likes it.
//
//   tile of 8 x 64 halves, 32 words a row, 64 threads: thread t fills word t of rows 0 and 1, then of 2 and
//   3, and so on
//
// What is refused: tiles with gaps, a part of a tile, fewer words than threads, words of elements that the
// tensor has apart.
#pragma once

#include <string>

#include "analysis/kernel_ops.h"
#include "plan/schedule.h"
#include "target/target.h"

namespace tilegen::schedule {

struct LaneOrderCopy {
  // The places of the tile by thread and register, as points of the copy's iteration that an unswizzled tile
  // would hold there.
  std::optional<layout::Fragment> iteration;
  int64_t vector = 0;  // elements of a word
  std::string why;     // there is none
};

LaneOrderCopy lane_order_copy(const analysis::KernelOp& op, const layout::Layout& tile, int element_bytes,
                              int64_t threads, const target::Target& t);

}  // namespace tilegen::schedule
