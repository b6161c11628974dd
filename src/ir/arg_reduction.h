// The largest or smallest element along an axis and where it stands, in statements that executors have.
//
//   argmax x -> v, at {axis = 1}  ->  reduce x -> v {kind=max, axis=1}
//                                     parallel i, j in 32, 64 {
//                                       place[i, j] = select(x[i, j] == v[i], j, 64)
//                                     }
//                                     reduce place -> at {kind=min, axis=1}
//
// requires: regions of a program being made, in a block outside of parallel loops. ensures: the first of
//   equal elements is told; the axis's extent where no element is a number.
// why here: parser and builder make the same statements of it.
// refuses: results that have not the shape of src without the axis, or with extent 1 there.
#pragma once

#include <optional>

#include "ir/program.h"

namespace tilegen::ir {

struct ArgReduction {
  Region src, value, index;
  bool largest = true;
  int64_t axis = 0;
};

// Appends the statements to `block`; what is wrong otherwise, without a place.
std::optional<Diagnostic> add_arg_reduction(Program& p, const ArgReduction& what,
                                            const SourceLocation& location, Block& block);

}  // namespace tilegen::ir
