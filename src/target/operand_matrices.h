// Operands of matrix instructions as 8x8 matrices, which one instruction loads from shared memory.
#pragma once

#include <vector>

#include "target/target.h"

namespace tilegen::target {

// Plain multiply-adds on registers in the form of an atom.
inline bool is_multiply_add(const MmaAtom& atom) { return atom.unit == MmaUnit::multiply_add; }

// Rows of a matrix that one instruction loads or stores, and bytes of a row (PTX ISA, "ldmatrix").
inline constexpr int64_t kMatrixRows = 8, kMatrixRowBytes = 16;

// An 8x8 matrix of 16-bit units of an atom's operand, as ldmatrix hands it out: rows along m or n, units
// along k.
struct OperandMatrix {
  int64_t row = 0, k = 0;  // of its first element
};
// Matrix i fills registers [i * e, (i + 1) * e) of every lane, e = 4 / element bytes. Empty: the operand does
// not have that form.
std::vector<OperandMatrix> operand_matrices(const MmaAtom& atom, int side);

}  // namespace tilegen::target
