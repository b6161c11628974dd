// Views of tiles and tensors: other shapes of the same elements.
//
//   view V = reshape(A, [8, 16, 64])       A: [128, 64]
//   copy X[0 :+ 1, y :+ 8, x :+ 16, 0 :+ 64] -> V           copy X[...] -> A
//   view T = transpose(A)                            ->
//   parallel i, j in 64, 128 { T[i, j] = 0 }                parallel i, j in 64, 128 { A[j, i] = 0 }
//   view S = A[64 :+ 64, 0 :+ 64]
//   gemm S, B -> C                                          gemm A[64 :+ 64, 0 :+ 64], B -> C
//   view U = reinterpret(A, u16)
//   parallel i, j in 128, 64 { U[i, j] = 0 }                parallel ... { A[i, j] = bitcast(f16, 0u16) }
//
// A view of a tensor may have extents that the launch tells:
//
//   view H = reshape(Q, [m, heads, 64])         Q: [m, heads * 64]
//   copy H[r :+ 64, h :+ 1, 0 :+ 64] -> q               copy Q[r :+ 64, h * 64 :+ 64] -> q
//   view G = X[first :+ rows, 0 :+ k]                ->
//   parallel i, j in 64, 64 { y[i, j] = G[r + i, j] }
//                                  y[i, j] = X[select(r + i < rows, r + i + first, -1), j]
//
// Beyond it, as beyond a tensor, reads give 0 and writes are dropped: an index that is not known to stay in
// the view, and beyond it would be another element's, is then -1.
//
// While a program is made a view is a buffer of its own, which has a shape, and every rule about shapes and
// names holds for it. In the end elements and boxes of it become elements and boxes of the tile.
//
// requires: views whose `of` was there before them. ensures: no statement and no expression names a view.
// why here: before names get their values, which follow what statements write.
// refuses: boxes that are none of the tile, constant indices outside of the view; of another type, what is
// neither an element nor moved.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/draft.h"

namespace tilegen::ir {

// Why the tile, or view, `of` has no such view; nothing where it has. It becomes a buffer, named `name`.
struct ViewRefusal {
  DiagCode code;
  std::string message, hint;
};
std::optional<ViewRefusal> view_refusal(const Program& p, const TileView& view,
                                        std::span<const ExprId> shape);
// Of views that there may be: the buffer of this shape; transposed and reinterpreted ones have their own.
BufferId add_view(Program& p, Draft& draft, TileView view, std::span<const ExprId> shape, std::string name,
                  SourceLocation location);

// Extents that count where shapes are compared.
std::vector<int64_t> several(std::span<const int64_t> extents);
// Boxes of these extents may be copied to each other (ops/op.h, matched_groups).
bool correspond(const Region& a, const Region& b);

std::vector<Diagnostic> resolve_views(Program& p, Draft& draft);

}  // namespace tilegen::ir
