// Stores to views of fewer bits than the elements of their tile. Who stores a part stores the element around
// it, so an element belongs to one iteration, which puts its parts together:
//
//   view b = reinterpret(Y, u8)         Y: u32[n], b: u8[4 * n]
//   parallel i in 64 { b[i] = f(i) }
//     ->
//   parallel i in 16 {
//     var whole = 0u32
//     unroll part in 0 .. 4 { let i_1 = i * 4 + part   whole |= cast(u32, f(i_1)) << part * 8 }
//     Y[i] = whole
//   }
//
// The same where a loop in the iteration counts the parts. Tiles of a block, whose statements follow each
// other, may have some parts of an element written: the others are read and stored again.
//
// requires: views that are resolved but for these stores. ensures: no statement names a view.
// why here: names and loops inside parallel loops are still allowed, and become values next (ir/draft.h).
// refuses: elements of which several iterations write parts, and of tensors those that are not written whole,
// as other blocks may write the rest.
#pragma once

#include <vector>

#include "ir/draft.h"

namespace tilegen::ir {

std::vector<Diagnostic> resolve_narrow_stores(Program& p, Draft& draft);

}  // namespace tilegen::ir
