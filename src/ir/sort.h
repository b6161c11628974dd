// The elements along an axis in order, or the first of them, in statements that executors have: a bitonic
// network over keys in the registers of lanes (ir/sort_lanes.h) or, as below, in shared memory, two steps of
// it at a time in the registers of a thread.
//
//   sort x -> y, at {axis = 1}  ->  the keys of x's elements, wider numbers of the element's order and its
//                                   place, padded to a power of two
//                                   parallel i, p in 32, 16 {      ; steps of the distances 2 and 1
//                                     a[i, p] = min(keys[i, p * 4], keys[i, p * 4 + 2])
//                                     c[i, p] = max(keys[i, p * 4], keys[i, p * 4 + 2])   ; b, d: 1, 3
//                                     keys[i, p * 4] = min(a[i, p], b[i, p])
//                                     keys[i, p * 4 + 1] = max(a[i, p], b[i, p])          ; ...
//                                   }
//                                   y and at, out of the keys
//
// A key holds order and place, so no two are equal and the result is the same on every executor; where places
// are not asked for it is the order alone, and equal keys are equal elements. The order is that of values, -0
// before 0 and NaN, which is one value, after all others; descending it is turned round, and equal elements
// stand in the order of their places both ways. Of the first k elements runs of at least k are sorted; then
// of two runs the lower half is taken and put in order, until one is left.
//
// requires: regions of a program being made, in a block outside of parallel loops.
// why here: parser and builder make the same statements of it.
// refuses: shapes that do not fit, tensors, types without an order, more than kMaxSortedExtent elements.
#pragma once

#include <optional>

#include "ir/program.h"
#include "support/limits.h"

namespace tilegen::ir {

struct Sort {
  Region src, dst;
  std::optional<Region> index;
  int64_t axis = 0;
  bool descending = false;
  bool first_ones = false;  // dst has no more elements along the axis than src
};
constexpr int64_t kMaxSortedExtent = 4096;

// Appends the statements to `block`; what is wrong otherwise, without a place.
std::optional<Diagnostic> add_sort(Program& p, const Sort& what, const SourceLocation& location, Block& block,
                                   const Limits& limits);

}  // namespace tilegen::ir
