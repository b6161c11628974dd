// Elements of a fragment that another lane of the reader's own warp holds.
#pragma once

#include "layout/fragment.h"
#include "ops/element_view.h"
#include "target/target.h"

namespace tilegen::analysis {

// Every thread holds one element and runs the point of the same indices, and the access differs from these in
// the last dimension alone, which lies within a warp: a shuffle brings the element, whichever index it has.
bool held_by_lanes(const layout::Fragment& held, const layout::Fragment& iteration,
                   const ops::ElementAccess& access, ir::DType type, const target::Target& t);

}  // namespace tilegen::analysis
