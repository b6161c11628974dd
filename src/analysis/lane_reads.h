// Elements of a fragment that another lane of the reader's own warp holds.
#pragma once

#include <optional>

#include "layout/fragment.h"
#include "ops/element_view.h"
#include "target/target.h"

namespace tilegen::analysis {

// Every thread holds one element and runs the point of the same indices, and the access differs from these in
// the last dimension alone, which lies within a warp.
bool lanes_hold_rows(const layout::Fragment& held, const layout::Fragment& iteration,
                     const ops::ElementAccess& access, const target::Target& t);

// Shuffles that bring a thread the element of each of its points; nothing where another warp may hold it. One
// where the register is the same on all lanes, else one for each that it may be.
//  - Lanes hold rows: whichever index it has.
//  - The index is made of digits of the point, and those that tell the warp of the holder tell that of the
//    reader.
std::optional<int64_t> lane_shuffles(const layout::Fragment& held, const layout::Fragment& iteration,
                                     const ops::ElementAccess& access, ir::DType type,
                                     const target::Target& t);
inline bool held_by_lanes(const layout::Fragment& held, const layout::Fragment& iteration,
                          const ops::ElementAccess& access, ir::DType type, const target::Target& t) {
  return lane_shuffles(held, iteration, access, type, t).has_value();
}

// The loop reads the element in votes of a group of lanes alone (ir/group_vote.h), which lanes that hold rows
// give without handing it over.
bool is_voted_on(const ir::Program& p, const ir::Loop& loop, const ops::ElementAccess& access);

}  // namespace tilegen::analysis
