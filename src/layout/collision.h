// Do two points of a digit box share all coordinates? Decided on digits, without walking the box.
#pragma once

#include "layout/layout.h"

namespace tilegen::layout {

enum class Domain : uint8_t {
  shape,       // points inside the shape
  padded_box,  // padding points count too
};

// The digits that tell points of `domain` apart: digits that are all padding are dropped, a top digit that is
// partly padding is shortened.
std::vector<Digit> effective_digits(const Layout& l, Domain domain);

// True when two distinct (index, replica) points have equal coordinates. With `broadcast_allowed`, points
// that differ in stride-0 digits only do not count as distinct. A search that would not end soon answers
// true: the caller may rely on false only.
bool has_collision(const Layout& l, Domain domain, bool broadcast_allowed);

}  // namespace tilegen::layout
