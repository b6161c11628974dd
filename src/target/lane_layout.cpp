#include "target/lane_layout.h"

#include <cassert>

namespace tilegen::target {

layout::Fragment over_lanes(int lanes, std::vector<int64_t> shape, std::initializer_list<LaneDigit> list) {
  std::vector<layout::Digit> digits;
  std::vector<int64_t> weight(shape.size() + 1, 1);
  for (const LaneDigit& d : list) {
    int64_t& w = weight[d.dim == layout::kReplica ? shape.size() : static_cast<size_t>(d.dim)];
    digits.push_back({d.dim, d.extent, w, d.output, d.stride});
    w *= d.extent;
  }
  auto map = layout::Layout::make(std::move(shape), std::move(digits), 2);
  assert(map && "atom table row is not a layout");
  auto fragment = layout::Fragment::make(*map, lanes);
  assert(fragment && "atom table row is not a fragment");
  return *fragment;
}

}  // namespace tilegen::target
