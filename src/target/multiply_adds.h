// Products by the lanes' own multiply-adds, which every device with warps has: exact in every type, for types
// without a matrix instruction and for tiles that none divides.
#pragma once

#include <vector>

#include "target/target.h"

namespace tilegen::target {

// How the lanes of a warp lie over a tile of C, and what one multiply-add of all of them takes.
struct LaneGrid {
  int rows = 0, columns = 0;
  int cycles = 0;  // of one scheduler
  int lanes() const { return rows * columns; }
};

// For each combination of types a form of 4x4 elements of C a lane, so that operands can be read four at a
// time, and one of a single element.
std::vector<MmaAtom> multiply_add_atoms(const LaneGrid& grid);

}  // namespace tilegen::target
