#include "codegen/llvm/nvptx/matrix_rows.h"

namespace tilegen::codegen {
namespace {

using enum MatrixWord;

// clang-format off
constexpr MatrixRow kRows[] = {
  {"mma.m16n8k16.f32.f16",   "llvm.nvvm.mma.m16n8k16.row.col.f32.f32", "", half2, f32,   4, 2, 4},
  {"mma.m16n8k16.f16.f16",   "llvm.nvvm.mma.m16n8k16.row.col.f16.f16", "", half2, half2, 4, 2, 2},
  {"mma.m16n8k16.f32.bf16",  "llvm.nvvm.mma.m16n8k16.row.col.bf16",    "", i32,   f32,   4, 2, 4},
  {"mma.m16n8k8.f32.tf32",   "llvm.nvvm.mma.m16n8k8.row.col.tf32",     "", tf32,  f32,   4, 2, 4},
  {"mma.m16n8k4.f32.tf32",   "llvm.nvvm.mma.m16n8k4.row.col.tf32",     "", tf32,  f32,   2, 1, 4},
  {"mma.m16n8k32.s32.s8.s8", "llvm.nvvm.mma.m16n8k32.row.col.s8",      "", i32,   i32,   4, 2, 4},
  {"mma.m16n8k32.s32.u8.u8", "llvm.nvvm.mma.m16n8k32.row.col.u8",      "", i32,   i32,   4, 2, 4},
  {"mma.m16n8k32.s32.s8.u8", "llvm.nvvm.mma.m16n8k32.row.col.s8.u8",   "", i32,   i32,   4, 2, 4},
  {"mma.m16n8k32.s32.u8.s8", "llvm.nvvm.mma.m16n8k32.row.col.u8.s8",   "", i32,   i32,   4, 2, 4},
  {"mma.m8n8k4.f64",         "llvm.nvvm.mma.m8n8k4.row.col.f64",       "", f64,   f64,   1, 1, 2},
#define TILEGEN_FP8_ROW(a, b) \
  {"mma.m16n8k32.f32." a "." b, "", "mma.sync.aligned.m16n8k32.row.col.f32." a "." b ".f32", \
   i32, f32, 4, 2, 4, 84}
  TILEGEN_FP8_ROW("e4m3", "e4m3"),
  TILEGEN_FP8_ROW("e4m3", "e5m2"),
  TILEGEN_FP8_ROW("e5m2", "e4m3"),
  TILEGEN_FP8_ROW("e5m2", "e5m2"),
#undef TILEGEN_FP8_ROW
};
// clang-format on

}  // namespace

const MatrixRow* find_matrix_row(std::string_view atom) {
  for (const MatrixRow& row : kRows)
    if (row.atom == atom) return &row;
  return nullptr;
}

bool is_fma_atom(std::string_view atom) { return atom.starts_with("fma."); }
bool is_byte_dot_atom(std::string_view atom) { return atom.starts_with("dp4a."); }

}  // namespace tilegen::codegen
