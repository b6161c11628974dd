// The sizes at which configurations are compared, where launches have sizes of a range.
//
// requires: names of dims and integer scalars of the program.
// ensures: two sizes to a doubling, as records have (record.h): each stands for those up to it, the last for
//   all above it, too. Multiples of what facts say the size divides by, within its bounds. Of several ranges
//   all pairs, thinned to kMaxPoints.
// why here: launches choose by the same steps. refuses: nothing.
#pragma once

#include "cost/sizes.h"
#include "driver/specialisations.h"

namespace tilegen::tune {

constexpr size_t kMaxPoints = 64;

struct SizeRange {
  std::string name;
  int64_t least = 0, most = 0;
};

std::vector<driver::SizeAxis> size_axes(const ir::Program& program, const std::vector<SizeRange>& ranges);

// Of all axes, the last fastest; `fixed` has the sizes of the others.
std::vector<cost::Sizes> size_points(const std::vector<driver::SizeAxis>& axes, const cost::Sizes& fixed);

// The same axes with sizes in the middle of each step, which tiles divide less often.
std::vector<driver::SizeAxis> middle_axes(const ir::Program& program, std::vector<driver::SizeAxis> axes);

}  // namespace tilegen::tune
