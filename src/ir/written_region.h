// The region that a tile operation writes.
#pragma once

#include <cassert>

#include "ir/program.h"

namespace tilegen::ir {

inline const Region& written_region(const TileOp& op) {
  const auto rows = op_row(op.kind).operands;
  size_t written = rows.size();
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].access != Access::read) written = i;
  assert(written < op.operands.size() && "every operation writes something");
  return op.operands[written];
}

}  // namespace tilegen::ir
