#include "analysis/lane_reads.h"

#include <algorithm>

namespace tilegen::analysis {

namespace {

constexpr int kMaxBytes = 8;  // two words

}  // namespace

bool held_by_lanes(const layout::Fragment& held, const layout::Fragment& iteration,
                   const ops::ElementAccess& access, ir::DType type, const target::Target& t) {
  if (access.write || !t.has_block_threads() || ir::is_bool(type) || ir::dtype_bytes(type) > kMaxBytes)
    return false;
  if (held.rank() == 0 || held.shape() != iteration.shape() || !held.equivalent(iteration)) return false;
  int64_t points = 1;
  for (int64_t extent : held.shape()) points *= extent;
  if (points != held.threads() || held.registers() != 1 || held.replicas() != 1) return false;
  const int last = held.rank() - 1;
  const int64_t lanes = held.shape().back();
  if (lanes < 2 || t.warp % lanes != 0 || points % t.warp != 0) return false;
  for (const layout::Digit& d : held.map().digits()) {
    if (d.output != layout::kThread || d.extent == 1) continue;
    if (d.dim == last ? d.stride != d.weight : d.stride % lanes != 0) return false;
  }
  for (int d = 0; d < last; ++d) {
    const size_t at = static_cast<size_t>(d);
    if (held.shape()[at] != 1 && (access.dim_of[at] != d || access.offset[at] != 0)) return false;
  }
  return true;
}

}  // namespace tilegen::analysis
