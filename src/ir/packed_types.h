// Packed types: programs are written with them, and hold their codes in u8.
//
//   tensor W: u4[n, k]                          tensor W: u8[n, k // 2] of u4
//   alloc Ws: shared u4[64, 128]                alloc Ws: shared u8[64, 64]
//   copy W[r :+ 64, ko * 128 :+ 128] -> Ws      copy W[r :+ 64, ko * 64 :+ 64] -> Ws
//   parallel i, j in 64, 128 {             ->   parallel i, j in 64, 128 {
//     Q[i, j] = cast(f16, Ws[i, j]) }             Q[i, j] = cast(f16, cast(i32, Ws[i, j // 2]) >> ... & 15) }
//
// Tensors and shared tiles keep several elements in a byte, the first in its lowest bits; fragments and local
// tiles, and e8m0 everywhere, an element in a byte. A parallel loop that writes elements of shared bytes has
// an iteration for each byte: the variable that names these elements counts bytes, and every store stands
// there for each element.
//
// requires: a program without views and names of values. ensures: no buffer and no expression has a packed
//   type; a tensor tells which one its bytes are of, for the launch. The same meaning: 0 outside of tensors
//   is code 0.
// why here: the last step of the parser and of the builder, so that every stage after it, and every executor,
//   sees bytes and integer arithmetic only.
// refuses: bytes that are not whole, writes of a part of a byte, operations on packed operands other than
//   copies and fills.
#pragma once

#include <vector>

#include "ir/draft.h"
#include "ir/program.h"

namespace tilegen::ir {

bool has_packed_types(const Program& p);
std::vector<Diagnostic> resolve_packed_types(Program& p, const Draft& draft);

}  // namespace tilegen::ir
