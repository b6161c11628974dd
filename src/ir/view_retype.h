// Tiles that operations see as another type only: they have that type, and what the program says of their
// own type goes to a view.
//
//   alloc w: shared u16[64, 64]              alloc w: shared f16[64, 64]
//   view h = reinterpret(w, f16)
//   parallel i, j in 64, 64 { w[i, j] = bits }  ->  parallel ... { w[i, j] = bitcast(f16, bits) }
//   gemm a, h -> c                           gemm a, w -> c
//
// So what reads the tile for the operation reads it as it lies there: a warpgroup's product in shared memory.
//
// requires: views that are not resolved. ensures: each such tile is a view, `reinterpret` of its own type, of
// a tile of the name that is new.
// why here: before views are resolved (ir/tile_view.h), which then makes casts of elements.
// leaves alone: tiles that an operation, an atomic one or an old value has in their own type, that are copied
// from tensors or shared tiles, element by element too, as copies of bits have no engine, and tiles that
// threads copy to asynchronously.
#pragma once

#include "ir/draft.h"

namespace tilegen::ir {

void retype_tiles(Program& p, Draft& draft);

}  // namespace tilegen::ir
