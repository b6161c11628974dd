// Parts of AMD's table of targets.
#pragma once

#include "target/target.h"

namespace tilegen::target::amd {

constexpr int kWave = 64;  // lanes
// That a buffer descriptor bounds, of 32 bits: no access at the bound, with any constant of the instruction
// (below 4096) added, comes round to the buffer's first bytes.
constexpr int64_t kBufferBytes = (INT64_C(1) << 32) - 4096;

// Cycles of a unit for the products of an instruction, where its multiply-adds take so many a cycle.
struct MatrixRates {
  int halves = 0, bytes = 0, words = 0;  // f16 and bf16; i8; f32 and f64
  int reduced_words = 0;                 // f32 as xf32, 10 bits of mantissa; 0: none
  bool wide_bytes = false;               // i8 by 16 or 32 k at once, and 8-bit floats
  bool sparse = false;                   // v_smfmac
};

// v_mfma, one row for each shape and combination of types.
std::vector<MmaAtom> matrix_atoms(const MatrixRates& rates);
// v_smfmac, of twice the rates.
std::vector<MmaAtom> sparse_matrix_atoms(const MatrixRates& rates);

}  // namespace tilegen::target::amd
