// Where the elements of a shared tile lie that no product reads. What threads alone write and read may lie in
// any way; what the copy engine fills or stores, in its boxes.
//
// requires: values with their layouts; ops with iterations, vectors and engines; the values that an engine
//   touches; `fits`: whether shared memory and the stages of loops are enough for a tile that lies so.
// ensures: such a tile, of origin `free` and on a GPU, lies as the accesses of all ops take the fewest
//   transactions (layout/bank_model.h). Candidates: row-major; an XOR, within 32, 64 or 128 bytes, of units
//   by higher bits of the address; rows padded by one unit or a few. Of the copy engine's tiles: row-major;
//   boxes of 32, 64 and 128 bytes. Of equals the first in this order.
//   A unit is what the widest access moves: no access becomes narrower, and cp.async keeps its alignment.
// why here: it takes iterations and engines as they are decided; slots and offsets follow from it.
// refuses: nothing. Where no candidate is free of conflicts the best of them is taken.
#pragma once

#include <functional>
#include <set>

#include "analysis/kernel_ops.h"
#include "infer/infer_layouts.h"
#include "target/target.h"

namespace tilegen::schedule {

// The candidates for a tile whose accesses move up to `widest` elements, the plainest first.
std::vector<layout::Layout> tile_layout_candidates(const std::vector<int64_t>& shape, int element_bytes,
                                                   int64_t widest);

using TileFits = std::function<bool(analysis::ValueId value, const layout::Layout& l)>;
void plan_tile_layouts(const ir::Program& p, const analysis::KernelOps& ops, const target::Target& t,
                       const std::set<analysis::ValueId>& engine_values, const TileFits& fits,
                       infer::InferResult& layouts);

}  // namespace tilegen::schedule
