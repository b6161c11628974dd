// Row-major walk over a box of indices, without allocation per point. A visitor that returns bool stops the
// walk with false.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace tilegen::ops {

// The next index of the box in row-major order; behind the last comes the first.
inline void next_index(std::span<const int64_t> extents, std::span<int64_t> index) {
  for (size_t d = extents.size(); d-- > 0;) {
    if (++index[d] != extents[d]) return;
    index[d] = 0;
  }
}

template <class Visit>
void for_each_index(std::span<const int64_t> extents, Visit&& visit) {
  for (int64_t e : extents)
    if (e <= 0) return;
  std::vector<int64_t> index(extents.size(), 0);
  for (;;) {
    const std::span<const int64_t> point(index);
    if constexpr (std::is_same_v<decltype(visit(point)), bool>) {
      if (!visit(point)) return;
    } else {
      visit(point);
    }
    size_t d = extents.size();
    while (d > 0 && ++index[d - 1] == extents[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace tilegen::ops
