#include "ir/place_extents.h"

#include <algorithm>

#include "ir/point_loops.h"
#include "support/diag_codes.h"

namespace tilegen::ir {

std::optional<Diagnostic> take_extents(const Program& p, Region& place, std::vector<int64_t> extents) {
  const size_t rank = place.extents.size();
  while (extents.size() > rank && extents.front() == 1) extents.erase(extents.begin());
  if (extents.size() <= rank) {
    std::copy(extents.begin(), extents.end(), place.extents.end() - static_cast<long>(extents.size()));
    return std::nullopt;
  }
  std::string shape;
  for (int64_t extent : extents) shape += (shape.empty() ? "" : " x ") + std::to_string(extent);
  return diagnostic(
      DiagCode::shape_mismatch,
      (place.buffer.valid() ? "'" + p.buffer(place.buffer).name + "' has " : std::string("it has ")) +
          std::to_string(rank) + " indices and no extents; those of the other side, " + shape + ", are " +
          std::to_string(extents.size()),
      "write its extents: [offset :+ extent, ...]");
}

}  // namespace tilegen::ir
