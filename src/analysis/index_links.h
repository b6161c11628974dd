// Which digits of the iteration are which digits of the buffer's elements.
//
// requires: extents of the iteration, the buffer's shape. ensures: each digit of a buffer's dimension is
// walked by one digit of the iteration, or is a gap, whose value is the same at all points; no digit of the
// iteration walks two. refuses: indices of which no digits are known, sums that carry, extents that do not
// divide.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ops/element_view.h"

namespace tilegen::analysis {

// point[iteration] // divisor % extent, times weight, is a part of the buffer's index; its values in another
// order where they are permuted.
struct IndexLink {
  int iteration = 0, buffer = 0;
  int64_t divisor = 1, extent = 1, weight = 1;
  bool permuted = false;
};

struct IndexLinks {
  std::vector<IndexLink> list;
  struct Gap {  // index // weight % extent is `value`
    int buffer = 0;
    int64_t weight = 1, extent = 1, value = 0;
  };
  std::vector<Gap> gaps;
  struct Idle {  // a part of a walked dimension that no index depends on
    int iteration = 0;
    int64_t divisor = 1, extent = 1;
  };
  std::vector<Idle> idle;

  // Every element is named, and as often as what no index depends on has points.
  bool names_all() const { return gaps.empty(); }
  // Each once but for iteration dimensions on which no index depends.
  bool names_each_once() const { return gaps.empty() && idle.empty(); }
  // That, at the digits' own values.
  bool keeps_order() const;
  bool walks(int iteration_dim) const;
  bool walks_buffer(int dim) const;
};

std::optional<IndexLinks> index_links(const ops::ElementAccess& access, std::span<const int64_t> extents,
                                      std::span<const int64_t> shape);

// Elements beside the one that it reads which a thread would hold in its registers; more of them are not
// followed.
inline constexpr int64_t kMaxGapElements = 16;

}  // namespace tilegen::analysis
