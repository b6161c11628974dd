// Reductions and scans by a program's own combination of two groups of values, in statements that executors
// have.
//
//   reduce x, y -> m, s by f {axis = 1}  ->  parallel i, j in 32, 8 {
//                                              a[i, j] = f.0(x[i, j * 8], y[i, j * 8], x[i, j * 8 + 1], ..)
//                                              b[i, j] = f.1(x[i, j * 8], y[i, j * 8], x[i, j * 8 + 1], ..)
//                                              c[i, j] = f.0(a[i, j], b[i, j], x[i, j * 8 + 2], ..)
//                                              ...
//                                            }
//                                            the same of the 8 parts, ...; m[i] = c_1[i, 0]
//
// Runs of up to eight neighbours are combined, the earlier one as the left group: f needs to be associative,
// not commutative, and has no identity. A scan has the prefixes of each run, scans the runs' totals, and
// combines each run with the total of what is before. A group that is given stands in front of the first
// run's prefixes and of the totals; without the element itself, each result goes to the next place.
//
// requires: regions of a program being made, in a block outside of parallel loops. ensures: one order of
//   combining, which is the extent's alone: the same bits wherever f's are the same.
// why here: parser and builder make the same statements of it.
// refuses: groups of other numbers or types than f's, shapes that do not fit, tensors, an f that reads
//   memory.
#pragma once

#include <optional>
#include <vector>

#include "ir/program.h"
#include "support/limits.h"

namespace tilegen::ir {

// Values of two groups, as variables of their types, and what becomes of them.
struct Combine {
  std::vector<VarId> left, right;
  std::vector<ExprId> results;
};

struct Combination {
  std::vector<Region> src, dst;
  Combine by;
  int64_t axis = 0;
  bool scan = false;
  bool accumulate = false;  // reduce: the old dst stands in front of all
  bool reverse = false;     // scan: from each element to the axis's end
  // scan: a group that stands in front of all, in reverse behind them; constants, dims and scalars. Or empty.
  std::vector<ExprId> first = {};
  // scan: the same in tiles of src's extents without the axis, which add_carried_scan checks. Or empty.
  std::vector<Region> carry = {};
  bool exclusive = false;  // scan: without the element itself, so that `first` is the first result
};
constexpr size_t kMaxCombinedValues = 8;  // values of a group

// What the groups come to.
std::vector<ExprId> combined(ExprPool& e, const Combine& by, const std::vector<ExprId>& left,
                             const std::vector<ExprId>& right);

// Appends the statements to `block`; what is wrong otherwise, without a place.
std::optional<Diagnostic> add_combination(Program& p, const Combination& what, const SourceLocation& location,
                                          Block& block, const Limits& limits);

}  // namespace tilegen::ir
