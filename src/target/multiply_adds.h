// Products by the lanes' own multiply-adds, which every device with warps has: exact in every type, for types
// without a matrix instruction and for tiles that none divides. And by their dot products, where a device has
// them.
#pragma once

#include <span>
#include <string>
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

// An instruction that adds to an element of C the products of a register of A and one of B: of 4 bytes, that
// many k side by side.
struct DotProduct {
  std::string name;
  ir::DType a = ir::DType::none, b = ir::DType::none, c = ir::DType::none;
  MmaSemantics meaning;
  std::string instruction = {};  // LLVM's intrinsic, where it has one
};
// In the same forms, at the rate of the multiply-adds.
std::vector<MmaAtom> dot_atoms(const LaneGrid& grid, std::span<const DotProduct> products);

// A product of tiles_m x tiles_n atoms of these forms is a loop over k: a lane had too many instructions
// otherwise. The bound is lower where 8-bit floats of its operands are converted, beside which a loop takes
// no time.
bool is_loop_over_k(const MmaAtom& atom, int64_t tiles_m, int64_t tiles_n, int64_t steps);

}  // namespace tilegen::target
