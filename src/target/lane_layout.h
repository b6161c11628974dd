// Fragments over the lanes of a warp, written as rows of digits: how tables of atoms state operand layouts.
#pragma once

#include <initializer_list>
#include <vector>

#include "layout/fragment.h"

namespace tilegen::target {

// A digit of dimension `dim` (or layout::kReplica); weights follow from the order in the list, per dimension.
struct LaneDigit {
  int dim;
  int64_t extent;
  int output;
  int64_t stride;
};

// The digits make up a fragment over `lanes` lanes; a row that does not is a mistake of the table.
layout::Fragment over_lanes(int lanes, std::vector<int64_t> shape, std::initializer_list<LaneDigit> list);

}  // namespace tilegen::target
