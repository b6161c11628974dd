#include "sim/warp.h"

namespace tilegen::sim {

uint32_t true_lanes(const Warp& w, Ref r, uint32_t among) {
  const Cell* c = w.values.at(r);
  if (r.stride() == 0) return c->i != 0 ? among : 0;
  uint32_t lanes = 0;
  for (int l = 0; l < kLanes; ++l) lanes |= uint32_t{c[l].i != 0} << l;
  return lanes & among;
}

}  // namespace tilegen::sim
