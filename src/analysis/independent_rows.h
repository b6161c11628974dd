// Dimensions along which a tile may begin at any row: a row of what a block stores is made of the same rows
// of what it loads, wherever in its tile they stand.
//
//   kernel gemm (by, bx)                              by: every row of C is made of one of A, and all of B
//     copy A[by * 128 :+ 128, ..] -> As               bx: every column of C of a row of B
//     gemm As, Bs -> acc
//     copy acc -> C[by * 128 :+ 128, bx * 64 :+ 64]
//
// requires: a checked program.
// ensures: where nothing is refused, the block index stands in `rows` only, each of which is `tile` times the
//   index and a rest that is free of it. With any number in the place of that product each row of a written
//   tensor that the block stores is as before, and it stores `tile` of them from that number on. No tensor
//   that the kernel writes is read in it, nor may one be in the same memory as a tensor that is read.
// why here: tiles that overlap are as right as others there (expand/overlap_form.h).
// refuses: with the reason as text, what tells rows of a tile apart, sums over them, atomics, and tensors
//   whose rows would not begin at multiples of 16 bytes.
#pragma once

#include <string>
#include <vector>

#include "ir/program.h"

namespace tilegen::analysis {

struct IndependentRows {
  int64_t tile = 0;              // rows
  ir::ExprId extent;             // rows of the tensors that are written
  std::vector<ir::ExprId> rows;  // each once
  std::string refusal;           // empty: the rows are independent
};
IndependentRows independent_rows(const ir::Program& p, int kernel, ir::VarId block_index);

// Of a size, by the program's facts.
bool is_multiple(const ir::Program& p, ir::ExprId size, int64_t of);

}  // namespace tilegen::analysis
