// Work of a matrix product, by the instruction and its split over warps or warpgroups. Planning compares
// candidates by it.
#pragma once

#include "analysis/gemm_shape.h"
#include "analysis/warp_partition.h"
#include "cost/work.h"

namespace tilegen::cost {

struct ProductWork {
  double product = 0;  // cycles of the units that multiply
  double loads = 0;    // cycles of shared memory
  double sums = 0;     // cycles of plain lanes: additions of promoted sums, gathering of sparse places
};

// Warpgroups m x n, the instruction's width; operands as the instructions see them (A and B may be swapped):
// whether A lies in shared memory, and which are copied into another order first.
struct WarpgroupSplit {
  const target::WarpgroupAtom* atom = nullptr;
  int64_t m = 1, n = 1;
  int width = 0;
  bool a_shared = true;
  bool copied[2] = {false, false};
};
ProductWork warpgroup_product(const analysis::GemmShape& s, const WarpgroupSplit& x, const target::Target& t);

// Where an operand of warps' instructions is read from.
struct OperandSource {
  bool shared = true;
  bool along_k = true;  // elements along k lie beside each other
  // Operations that make an element, of what threads make in registers for each product: each warp that
  // multiplies it makes it for itself.
  int64_t made_by = 0;
};
ProductWork warp_product(const analysis::GemmShape& s, const target::MmaAtom& atom,
                         const analysis::WarpGrid& g, const OperandSource (&from)[2],
                         const target::Target& t);

// Cycles of a block whose units multiply while shared memory serves them: loads run beside the instructions
// but share issue slots with them.
double cycles_of(const ProductWork& w);

}  // namespace tilegen::cost
