#include "sim/warp.h"

namespace tilegen::sim {

LaneMask true_lanes(const Warp& w, Ref r, LaneMask among) {
  const Cell* c = w.values.at(r);
  if (r.stride() == 0) return c->i != 0 ? among : 0;
  LaneMask lanes = 0;
  for (int l = 0; l < w.lanes; ++l) lanes |= LaneMask{c[l].i != 0} << l;
  return lanes & among;
}

}  // namespace tilegen::sim
