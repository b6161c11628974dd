// Boxes of tensors that warps of a block copy to shared tiles together, asynchronously.
//
//   if warp == 4 { copy_bulk X[k * 4 :+ 4, 0 :+ 128] -> ring[k % 3, 0 :+ 4, 0 :+ 128] }
//
//   serial i in 0 .. 4 {bulk = [4, 128]} {            chunk i * 32 + lane of the box, row by row, of 4, 8 or
//     parallel w, l, e in 6, 32, 4 {asynchronous} {   16 bytes each, is the thread's
//       if w == 4 { ring[..] = X[..] }
//     }
//   }
//
// The annotation names the box: a copy engine may do what the loop does (lower/gpu/bulk_copies.h).
//
// requires: a block of a block of threads, room for two statements. refuses: what is no copy of a tensor's
//   box to a box of a shared tile with the same extents, or has rows of no whole words of 4 bytes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/draft.h"
#include "ir/program.h"

namespace tilegen::ir {

constexpr std::string_view kBulk = "bulk";  // the annotation

std::optional<Diagnostic> bulk_copy_refusal(const Program& p, const Region& from, const Region& to);
// Of regions that are not refused: a loop over the box's elements, until the draft is resolved.
StmtId add_bulk_copy(Program& p, Draft& draft, const Region& from, const Region& to,
                     const SourceLocation& location, Block& block);

// Elements of a chunk, of a box whose rows have so many bytes.
int64_t bulk_chunk(int64_t row_elements, int64_t element_bytes);
// Where element `element` of chunk warp * 32 + lane is in the box, whose extents are all above 1, slowest
// first.
std::vector<ExprId> bulk_coordinates(ExprPool& e, const std::vector<int64_t>& box, int64_t chunk, ExprId warp,
                                     ExprId lane, ExprId element);
// The box that the loop's annotation names; empty: it has none.
std::vector<int64_t> bulk_box(const Stmt& loop);

}  // namespace tilegen::ir
