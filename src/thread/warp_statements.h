// Statements that all lanes of a warp execute together.
#pragma once

#include <string>

#include "ir/expr.h"

namespace tilegen::thread {

using MemoryId = ir::ObjectId;

// dst[dst_index] = `value` as computed by another lane of the warp: lane (own ^ `lane`) for butterfly, lane
// `lane` for indexed. 32-bit and smaller types.
struct Shuffle {
  enum class Mode : uint8_t { butterfly, indexed } mode = Mode::butterfly;
  MemoryId dst;
  ir::ExprId dst_index;
  ir::ExprId value;
  ir::ExprId lane;  // i64; butterfly: the same for all lanes
};

// What the lanes of a warp say together, in groups of `lanes` neighbours, each lane of its own group.
//   any     dst[dst_index] = `value` holds for one of them                                   (bool)
//   ballot  dst[dst_index] = for which of them it holds, lane i of the group being bit i     (u32)
//   match   dst[dst_index] = which of them have the lane's own `value`, as bits likewise     (u32)
// All lanes of the warp execute it.
struct Vote {
  enum class Mode : uint8_t { any, ballot, match } mode = Mode::ballot;
  MemoryId dst;  // in registers
  ir::ExprId dst_index;
  ir::ExprId value;    // bool; match: an integer
  int64_t lanes = 32;  // 2, 4, 8, 16 or 32
};
const char* vote_name(Vote::Mode mode);
inline ir::DType vote_type(Vote::Mode mode) {
  return mode == Vote::Mode::any ? ir::DType::boolean : ir::DType::u32;
}

// ldmatrix: `matrices` (1, 2 or 4) 8x8 matrices of 16-bit units (one element of 2 bytes, two of 1, half of
// one of 4) from shared memory into registers. Lane 8*i + r holds in src_index the first element of row r of
// matrix i (lanes beyond are ignored); rows are 16 bytes, 16-byte aligned. Lane l receives units 2*(l%4) and
// 2*(l%4)+1 of row l/4 of matrix i (transposed: units l/4 of rows 2*(l%4) and 2*(l%4)+1, elements of 1 or 2
// bytes) as the elements [dst_index + i*e, dst_index + (i+1)*e), e = 4 / element bytes. Elements of one byte
// may be loaded to registers of another type of one byte, as they are.
struct LoadMatrix {
  MemoryId dst;
  ir::ExprId dst_index;
  MemoryId src;
  ir::ExprId src_index;
  int matrices = 4;
  bool transpose = false;
};
// stmatrix: the reverse, registers to shared memory (targets that have it); elements of 1 or 2 bytes.
struct StoreMatrix {
  MemoryId dst;
  ir::ExprId dst_index;  // shared: the lane's row
  MemoryId src;
  ir::ExprId src_index;  // registers
  int matrices = 4;
  bool transpose = false;
};

// One matrix instruction of a warp, a row of the target's table: C += A * B on registers, each operand's
// elements consecutive in the order of the atom's fragment.
struct WarpMma {
  std::string atom;
  MemoryId a, b, c;
  ir::ExprId a_index, b_index, c_index;
  int a_registers = 0, b_registers = 0, c_registers = 0;  // elements a lane holds of each operand
  // Of a sparse instruction: the lane's register of places (target::MmaAtom::places), an element of u32.
  MemoryId places = {};
  ir::ExprId places_index = {};
};

}  // namespace tilegen::thread
