// Operands of a warp's matrix instructions as LLVM and PTX take them.
#pragma once

#include "target/target.h"

namespace tilegen::codegen {

// What a 32-bit (f64: 64-bit) register is. tf32: an f32 value, rounded to tf32 on the way in.
enum class MatrixWord : uint8_t { i32, half2, f32, f64, tf32 };

struct MatrixOperands {
  MatrixWord a_word, c_word;  // b is like a
  int a, b, c;                // registers of a lane
  bool places;                // a register of the places of A's values follows C
};

// Of an atom of the matrix unit: as the layouts of its operands say.
MatrixOperands matrix_operands(const target::MmaAtom& atom);

}  // namespace tilegen::codegen
