// Scans that go on from one tile of a row to the next, in statements that executors have.
//
//   scan x -> y carry c {kind=sum, axis=1}  ->  scan x -> y {kind=sum, axis=1}
//                                               parallel i, j in 32, 64 { y[i, j] = c[i] + y[i, j] }
//                                               parallel i, j in 32, 1 { c[i] = y[i, 63] }
//
// What is carried stands in front of the axis, in reverse behind it, and becomes the total. An exclusive
// scan does not have that: the last element is kept before the scan, which may write it. Scans by a
// combination of the program take what is carried as their first group.
//
// requires: regions of a program being made, in a block outside of parallel loops. ensures: loops of their
//   own read and write what is carried, so its hazards and lifetime are those of any tile.
// why here: parser and builder make the same statements of it.
// refuses: what is carried that has not the number, shape or type of the results, is in a tensor, or in a
//   tile that the scan reads or writes.
#pragma once

#include <optional>
#include <vector>

#include "ir/combination.h"

namespace tilegen::ir {

struct CarriedScan {
  Combination scan;  // `by` is of scans by a combination alone, `first` is empty
  std::vector<Region> carry;
  // A scan of the language itself, with its attributes; src and dst are those of `scan`.
  std::optional<TileOp> op = {};
};

// Of a scan of the language itself, whose attributes are set.
CarriedScan carried_scan(const Region& src, const Region& dst, const Region& carry, TileOp op);

// Appends the statements to `block`; what is wrong otherwise, without a place.
std::optional<Diagnostic> add_carried_scan(Program& p, CarriedScan what, const SourceLocation& location,
                                           Block& block, const Limits& limits);

}  // namespace tilegen::ir
