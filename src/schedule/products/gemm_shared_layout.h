// How an operand of a warp's matrix instructions lies in shared memory.
//
// requires: an atom of the target's table, and the tile of one side of the product. ensures: rows of 16-byte
// pieces whose order an XOR changes from row to row, or, where no XOR makes the atom's loads free of bank
// conflicts, padded rows: what takes the fewest wavefronts of loads and copies. Where `k_together` > 1, so
// many k lie beside each other though the tile's rows run along m or n. refuses: nothing.
#pragma once

#include "analysis/gemm_shape.h"
#include "target/target.h"

namespace tilegen::schedule {

layout::Layout shared_layout(const target::MmaAtom& atom, int side, const analysis::MatrixDims& m,
                             ir::DType type, const layout::BankModel& banks, int64_t k_together = 1);

// Neighbouring k that the lanes of the atom hold, where it pays to let pieces of so many be what a swizzle
// moves: in a tile whose rows run along m or n they are put together, and what fills the tile transposes
// small blocks. Else 1.
int64_t k_laid_together(const ir::Program& p, const ir::Region& operand, const target::MmaAtom& atom,
                        int side, const analysis::MatrixDims& m, const target::Target& t);

}  // namespace tilegen::schedule
