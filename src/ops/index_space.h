// Row-major walk over a box of indices, without allocation per point.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilegen::ops {

template <class Visit>
void for_each_index(std::span<const int64_t> extents, Visit&& visit) {
  for (int64_t e : extents)
    if (e <= 0) return;
  std::vector<int64_t> index(extents.size(), 0);
  for (;;) {
    visit(std::span<const int64_t>(index));
    size_t d = extents.size();
    while (d > 0 && ++index[d - 1] == extents[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace tilegen::ops
