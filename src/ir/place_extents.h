// Boxes of which a program says where they begin alone: copy A[i, j] -> tile.
//
// requires: a region of one element, and the extents of the other side's ranges. ensures: they are those
//   of the region's last dimensions; dimensions in front are of one element, and extents of 1 that the region
//   has no dimension for are left out.
// why here: parser and builder take them alike.
// refuses: more extents than the region has dimensions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"

namespace tilegen::ir {

// What is wrong, without a place; the region is then as it was.
std::optional<Diagnostic> take_extents(const Program& p, Region& place, std::vector<int64_t> extents);

}  // namespace tilegen::ir
