// The iteration space of a tile operation of any form, and which of its dimensions walks each of an
// operand's: an element-wise one has the dimensions of its regions, a product m, n and k, a reduction those
// of its source.
#pragma once

#include <vector>

#include "ir/program.h"

namespace tilegen::analysis {

struct IterationDims {
  // Per operand, per dimension of it; negative as in ops/element_view.h: none walks it, or several do.
  std::vector<std::vector<int>> dim_of;
  std::vector<bool> reads, writes;       // per operand
  int reduced = -1;  // of which a point has others: that are summed up, reduced, or follow each other
};
IterationDims iteration_dims(const ir::Program& p, const ir::TileOp& op);

}  // namespace tilegen::analysis
