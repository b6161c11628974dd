// Element-wise work seen uniformly: tile operations of element form, parallel loops and lone stores are all
// an iteration box and a list of accesses with affine index maps. Layout inference and lowering reason about
// this view only.
#pragma once

#include <optional>
#include <vector>

#include "ir/program.h"

namespace tilegen::ops {

constexpr int kUniformIndex = -1;  // the buffer dimension's index is the same for all iterations
constexpr int kIrregularIndex =
    -2;  // anything but one iteration variable with coefficient 1, plus a uniform offset

struct ElementAccess {
  ir::BufferId buffer;
  bool write = false;
  std::vector<int> dim_of;      // per buffer dimension: iteration dimension, or one of the constants above
  std::vector<int64_t> offset;  // per buffer dimension: constant offset; kUnknownOffset when not constant

  // per buffer dimension: the index where its offset is not constant, else invalid
  std::vector<ir::ExprId> unknown;

  static constexpr int64_t kUnknownOffset = INT64_MIN;
};

struct ElementView {
  std::vector<int64_t> extents;
  std::vector<ElementAccess> accesses;  // reads before the write they feed, in program order
};

// View of a tile operation of element form, of a parallel loop or a store; nothing for other statements.
std::optional<ElementView> element_view(const ir::Program& p, ir::StmtId stmt);

// The iteration dimensions of such a tile operation: for each region the buffer dimension that an iteration
// dimension walks, in order. Regions of different rank are matched on their dimensions of extent > 1.
struct RegionMatch {
  std::vector<int64_t> extents;
  std::vector<std::vector<int>>
      dim_of;  // per operand, per buffer dimension: iteration dimension or kUniformIndex
};
RegionMatch match_regions(const std::vector<ir::Region>& regions);

}  // namespace tilegen::ops
