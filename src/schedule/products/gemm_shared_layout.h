// How an operand of a warp's matrix instructions lies in shared memory.
//
// requires: an atom of the target's table, and the tile of one side of the product. ensures: rows of 16-byte
// pieces whose order an XOR changes from row to row, or, where no XOR makes the atom's loads free of bank
// conflicts, padded rows: what takes the fewest wavefronts of loads and copies. refuses: nothing.
#pragma once

#include "analysis/gemm_shape.h"
#include "target/target.h"

namespace tilegen::schedule {

layout::Layout shared_layout(const target::MmaAtom& atom, int side, const analysis::MatrixDims& m,
                             ir::DType type, const layout::BankModel& banks);

}  // namespace tilegen::schedule
