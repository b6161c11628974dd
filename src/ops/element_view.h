// Element-wise work seen uniformly: tile operations of element form, parallel loops and lone stores are all
// an iteration box and a list of accesses with affine index maps. Layout inference and lowering reason about
// this view only.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/program.h"
#include "ops/index_digits.h"

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

  // Per buffer dimension, or empty: of an irregular one what is known all the same, offset + sum of these.
  // (Its digits; a dimension of one region that is several of the other.)
  std::vector<std::vector<IndexTerm>> terms = {};

  // Per buffer dimension, or empty: the iteration dimensions that an unknown index names, as bits.
  std::vector<uint32_t> names = {};

  bool of_region = false;  // of a tile operation

  static constexpr int64_t kUnknownOffset = INT64_MIN;

  // Of an index what depends on the point; of irregular ones of which nothing is known 0.
  int64_t index_at(size_t d, std::span<const int64_t> point) const;
  // An irregular index of which no terms are known.
  bool is_unknown(size_t d) const {
    return dim_of[d] == kIrregularIndex && (terms.empty() || terms[d].empty());
  }
  bool any_unknown() const;
  // Such an index may change along the iteration dimension.
  bool is_unknown_along(int iteration_dim) const;
  // Buffer dimension whose index grows by one with every step along the iteration dimension, in runs that
  // begin at its multiples and in which no other index changes.
  struct Walk {
    int dim = -1;
    int64_t run = INT64_MAX;
  };
  std::optional<Walk> walk(int iteration_dim) const;
  // Iteration dimension along which neighbours of the buffer's last dimension lie; negative: none.
  int along_last() const;
  // The index may differ between points that differ in the iteration dimension alone.
  bool depends_on(int iteration_dim) const;
  // The same elements at every point.
  bool same_elements(const ElementAccess& o) const {
    return buffer == o.buffer && dim_of == o.dim_of && offset == o.offset && unknown == o.unknown &&
           terms == o.terms;
  }
};

struct ElementView {
  std::vector<int64_t> extents;
  std::vector<ElementAccess> accesses;  // reads before the write they feed, in program order
};

// View of a tile operation of element form, of a parallel loop or a store; nothing for other statements.
std::optional<ElementView> element_view(const ir::Program& p, ir::StmtId stmt);

// buffer[indices] as the parallel loop's points name it.
ElementAccess loop_access(const ir::Program& p, const ir::Loop& loop, ir::BufferId buffer,
                          std::span<const ir::ExprId> indices, bool write);

// The iteration dimensions of such a tile operation: for each region the buffer dimension that an iteration
// dimension walks, in order. Regions of different rank are matched on their dimensions of extent > 1. Where
// one dimension of a region is several of the other, iterations are those of a fragment, else the several.
struct RegionMatch {
  std::vector<int64_t> extents;
  // per operand, per buffer dimension: iteration dimension, kUniformIndex, or kIrregularIndex with terms
  std::vector<std::vector<int>> dim_of;
  std::vector<std::vector<std::vector<IndexTerm>>> terms;  // per operand
};
RegionMatch match_regions(const ir::Program& p, const std::vector<ir::Region>& regions);

}  // namespace tilegen::ops
