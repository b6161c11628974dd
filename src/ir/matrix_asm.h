// The text of a matrix instruction of a program (ir/matrix_atom.h): one instruction and its operands.
//
// Read word by word, so that what is not known is refused: mma.sync in PTX, v_mfma in GCN, of the shape that
// the atom has. In PTX each register of a lane is an operand: those of the sum, of A, of B, of C. In GCN
// these are four operands of as many registers as each has.
#pragma once

#include <optional>
#include <string_view>

#include "ir/native_asm.h"

namespace tilegen::ir {

// What the text must be of.
struct MatrixAsmShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t a = 0, b = 0, c = 0;  // registers of a lane
};

std::optional<NativeAsmError> matrix_asm_refusal(NativeForm form, std::string_view text,
                                                 const MatrixAsmShape& shape);

}  // namespace tilegen::ir
