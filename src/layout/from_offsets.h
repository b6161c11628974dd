// A layout of the offsets that its elements have: what a function of the indices, or any rule, comes to.
//
// requires: `offsets`, one for each element in row-major order. ensures: the layout gives each of them.
// refuses (schedule_illegal): offsets that are no sums of digits of the indices, with or without one XOR
// swizzle; negative ones. Of places in registers, what is none of thread * registers + register.
#pragma once

#include <cstdint>
#include <span>

#include "layout/fragment.h"
#include "layout/layout.h"

namespace tilegen::layout {

Expected<Layout> layout_of_offsets(std::span<const int64_t> shape, std::span<const int64_t> offsets,
                                   int element_bytes);

// Of places thread * registers + register, each of one element.
Expected<Fragment> fragment_of_places(std::span<const int64_t> shape, std::span<const int64_t> places,
                                      int64_t threads);

}  // namespace tilegen::layout
