// Copies into tiles that are not laid as the tensor is.
//
//   tensor (k, n), rows along n     tile: 4 neighbouring k of an n beside each other
//   a thread has 4 x 4 elements     4 loads of 4 along n, then 4 stores of 4 along k
//
// A tile whose swizzle moves pieces of 4 along n is filled so, too: a thread loads 8 and stores two pieces.
//
// What is refused: tiles that have no such neighbours, extents that blocks do not divide.
#include <numeric>

#include "analysis/run_ahead.h"
#include "infer/access_cost.h"

namespace tilegen::infer {

using analysis::KernelOp;
using layout::Digit;
using layout::Fragment;
using layout::Layout;

namespace {

// Dimensions of the iteration: along the tensor's rows, along the tile's; and how many lie together there.
struct Crossing {
  int along = -1, across = -1;
  int64_t together = 1;
};

std::optional<Crossing> crossing(const KernelOp& op, const KnownLayouts& known) {
  Crossing c;
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    const ops::ElementAccess& a = op.view.accesses[i];
    const ValueId v = op.accesses[i].value;
    if (a.dim_of.empty() || !a.terms.empty()) return std::nullopt;
    if (!v.valid()) {
      c.along = a.dim_of.back();
      continue;
    }
    const auto& memory = known.memories[v];
    for (int d = 0; memory && d < memory->rank(); ++d)
      if (const int64_t run = memory->contiguous_run(d);
          run > c.together && a.dim_of[static_cast<size_t>(d)] >= 0)
        c.across = a.dim_of[static_cast<size_t>(d)], c.together = run;
  }
  return c.along >= 0 && c.across >= 0 ? std::optional(c) : std::nullopt;
}

}  // namespace

std::optional<TransposingCopy> transposing_copy(const ir::Program& p, const KernelOp& op, int64_t threads,
                                                const KnownLayouts& known, const target::Target& t) {
  if (!t.register_copies || !analysis::is_tile_load(p, op)) return std::nullopt;
  auto c = crossing(op, known);
  if (!c) return std::nullopt;
  const std::vector<int64_t>& extents = op.view.extents;
  const int64_t along = extents[static_cast<size_t>(c->along)],
                across = extents[static_cast<size_t>(c->across)];
  int64_t points = 1, bytes = 1;
  for (int64_t extent : extents) points *= extent;
  for (const analysis::OpAccess& a : op.accesses)
    bytes = std::max<int64_t>(bytes, ir::dtype_bytes(p.buffer(a.buffer).type));
  const int64_t widest = t.vector_bytes / bytes;
  c->together = std::gcd(c->together, widest);
  const bool crosses = c->along != c->across;  // else the tile keeps smaller pieces together
  if (c->together == 1 || across % c->together != 0 || (!crosses && c->together == widest))
    return std::nullopt;
  // As wide as leaves a block to every thread.
  const int64_t rows = crosses ? c->together : 1;
  int64_t vector = widest;
  while (vector > 1 && (along % vector != 0 || points / (vector * rows) < threads)) vector /= 2;
  if (!crosses && vector <= c->together) return std::nullopt;

  // Coordinates: blocks across, blocks along, the place in a block.
  std::vector<int64_t> placed;
  std::vector<Digit> digits;
  const auto add = [&](int dim, int64_t extent, int64_t weight) {
    digits.push_back({.dim = dim,
                      .extent = extent,
                      .weight = weight,
                      .output = static_cast<int>(placed.size()),
                      .stride = 1});
    placed.push_back(extent);
  };
  for (int d = 0; d < static_cast<int>(extents.size()); ++d)
    if (d != c->along && d != c->across) add(d, extents[static_cast<size_t>(d)], 1);
  if (crosses) add(c->across, across / rows, rows);
  add(c->along, along / vector, vector);
  const int last = static_cast<int>(placed.size());
  digits.push_back({.dim = c->along, .extent = vector, .weight = 1, .output = last, .stride = 1});
  digits.push_back({.dim = c->across, .extent = rows, .weight = 1, .output = last, .stride = vector});
  placed.push_back(vector * rows);
  std::erase_if(digits, [](const Digit& d) { return d.extent == 1; });
  const auto places = Layout::make(extents, std::move(digits), last + 1);
  if (!places) return std::nullopt;
  const auto map = Fragment::row_major_vectors(placed, threads, vector * rows).map().compose(*places);
  if (!map) return std::nullopt;
  auto iteration = Fragment::make(*map, threads);
  if (!iteration) return std::nullopt;
  return TransposingCopy{std::move(*iteration), vector};
}

}  // namespace tilegen::infer
