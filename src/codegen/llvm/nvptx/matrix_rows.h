// The matrix instructions of a warp, one row each: how its name in the target's tables becomes an
// instruction. A new atom of the same kind is a row.
#pragma once

#include <string>
#include <string_view>

namespace tilegen::codegen {

// What an operand's 32-bit (f64: 64-bit) registers are to LLVM. tf32: f32 values, rounded to tf32 on the way
// in.
enum class MatrixWord : uint8_t { i32, half2, f32, f64, tf32 };

struct MatrixRow {
  std::string_view atom;
  std::string_view intrinsic;    // LLVM's name; empty: inline assembly
  std::string_view instruction;  // PTX
  MatrixWord a_word, c_word;     // b is like a
  int a, b, c;                   // registers
  int ptx = 70;                  // least that has it
};

// Null for an unknown name.
const MatrixRow* find_matrix_row(std::string_view atom);

// Plain multiply-add atoms ("fma.f32"): one element of each operand a lane.
bool is_fma_atom(std::string_view atom);
// Dot products of four bytes ("dp4a.s32.s8.s8:4x4"): a register of A for each row, of B for each column.
bool is_byte_dot_atom(std::string_view atom);

}  // namespace tilegen::codegen
