// Iteration layouts that are tried for an element-wise op: row-major, with vectors along one dimension or
// another.
//
// Where the vector runs across the rows of a shared tile (a transpose), a warp that spans one long row of
// what is dense elsewhere takes one or two columns of many rows of the tile: more rows than the banks have
// units of 16 bytes, wherever the tile's elements lie. Lanes in blocks span 128 bytes of the dense row and
// several rows of it, so that they take neighbouring columns of fewer rows of the tile:
//
//   64x64 f32, vectors of 4    16 lanes along, 2 across      16 rows of the tile, 2 columns
//   in blocks                  8 lanes along, 4 across       8 rows of the tile, 4 columns
#include "infer/candidate_iterations.h"

#include <algorithm>

namespace tilegen::infer {

using analysis::KernelOp;
using analysis::OpForm;
using layout::Digit;
using layout::Fragment;
using layout::Layout;

std::vector<int64_t> iteration_extents(const ir::Program& p, const KernelOp& op) {
  if (op.form == OpForm::element) return op.view.extents;
  return p.as<ir::TileOp>(op.stmt)->operands[0].extents;
}

// Elements of a block along `dim`; 0 where no shared tile is crossed, or its rows are no longer than a line.
int64_t CandidateIterations::block_along(const KernelOp& op, int dim) const {
  if (!in_.target.has_block_threads()) return 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    const ops::ElementAccess& a = op.view.accesses[i];
    const ValueId v = op.accesses[i].value;
    if (!v.valid() || in_registers_.has(op, v) || a.dim_of.empty() || a.along_last() == dim) continue;
    if (a.walk(dim)) bytes = std::max<int64_t>(bytes, ir::dtype_bytes(in_.program.buffer(a.buffer).type));
  }
  const int64_t extent = iteration_extents(in_.program, op)[static_cast<size_t>(dim)];
  const int64_t block = bytes == 0 ? 0 : in_.target.line_bytes / bytes;
  return block > 0 && extent > block && extent % block == 0 ? block : 0;
}

// Dimensions along which vectors may run, with the block of each.
std::map<int, int64_t> CandidateIterations::vector_dims(const KernelOp& op) const {
  const std::vector<int64_t> extents = iteration_extents(in_.program, op);
  std::map<int, int64_t> dims;
  if (extents.empty()) return dims;
  dims[static_cast<int>(extents.size()) - 1] = 0;
  for (const ops::ElementAccess& a : op.view.accesses)
    if (a.along_last() >= 0) dims[a.along_last()] = 0;
  for (auto& [dim, block] : dims) block = block_along(op, dim);
  return dims;
}

std::optional<Fragment> CandidateIterations::vectors_along(const std::vector<int64_t>& extents, int dim,
                                                           int64_t vector) const {
  std::vector<int> order;  // new dimension i is old order[i]: `dim` last
  for (int d = 0; d < static_cast<int>(extents.size()); ++d)
    if (d != dim) order.push_back(d);
  order.push_back(dim);
  std::vector<int64_t> permuted;
  for (int d : order) permuted.push_back(extents[static_cast<size_t>(d)]);
  Fragment f = Fragment::row_major_vectors(permuted, in_.threads, vector);
  std::vector<int> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int>(i);
  auto placed = Fragment::make(f.map().permute(back), in_.threads);
  if (!placed) return std::nullopt;
  return *placed;
}

// The same with the threads along `dim` within blocks of it. Nothing where other extents are ragged.
std::optional<Fragment> CandidateIterations::vectors_in_blocks(const std::vector<int64_t>& extents, int dim,
                                                               int64_t vector, int64_t block) const {
  // Coordinates: the number of the block first, the place within it last.
  std::vector<int64_t> placed = {extents[static_cast<size_t>(dim)] / block};
  std::vector<Digit> digits = {{.dim = dim, .extent = placed[0], .weight = block, .output = 0, .stride = 1}};
  const auto add = [&](int d, int64_t extent) {
    digits.push_back(
        {.dim = d, .extent = extent, .weight = 1, .output = static_cast<int>(placed.size()), .stride = 1});
    placed.push_back(extent);
  };
  for (int d = 0; d < static_cast<int>(extents.size()); ++d)
    if (d != dim) add(d, extents[static_cast<size_t>(d)]);
  add(dim, block);
  const auto places = Layout::make(extents, std::move(digits), static_cast<int>(placed.size()));
  if (!places) return std::nullopt;
  const auto map = Fragment::row_major_vectors(placed, in_.threads, vector).map().compose(*places);
  if (!map) return std::nullopt;
  const auto made = Fragment::make(*map, in_.threads);
  return made ? std::optional(*made) : std::nullopt;
}

// Few values each: `x[i, j ^ 32]` is then a register beside the thread's own. The lowest ones lie in vectors.
std::set<CandidateIterations::KeptDigit> CandidateIterations::permuted_digits(const KernelOp& op) const {
  constexpr int64_t kMaxValues = 8;
  std::set<KeptDigit> digits;
  if (!in_.target.has_block_threads()) return digits;
  for (size_t i = 0; i < op.view.accesses.size(); ++i) {
    if (!op.accesses[i].value.valid() || !in_registers_.has(op, op.accesses[i].value)) continue;
    for (const auto& terms : op.view.accesses[i].terms)
      for (const ops::IndexTerm& t : terms)
        if (t.is_permuted() && t.divisor > 1 && t.modulus <= kMaxValues)
          digits.insert({t.dim, t.divisor, t.modulus});
  }
  return digits;
}

std::optional<Fragment> CandidateIterations::digit_in_registers(const std::vector<int64_t>& extents, int dim,
                                                                int64_t vector,
                                                                const KeptDigit& digit) const {
  const auto& [kept, divisor, extent] = digit;
  std::vector<int64_t> others = extents, times(extents.size(), 1);
  int64_t& rest = others[static_cast<size_t>(kept)];
  if (rest % (divisor * extent) != 0) return std::nullopt;
  rest /= extent;
  times[static_cast<size_t>(kept)] = extent;
  const auto f = vectors_along(others, dim, vector);
  if (!f || f->map().padded_extent(kept) != rest) return std::nullopt;
  // The digit is the most significant one of the repeated tile.
  std::vector<int> order;
  std::vector<Digit> digits;
  for (int d = 0; d < static_cast<int>(extents.size()); ++d) {
    order.push_back(d);
    if (d != kept)
      digits.push_back(
          {.dim = d, .extent = extents[static_cast<size_t>(d)], .weight = 1, .output = d, .stride = 1});
  }
  digits.push_back({.dim = kept, .extent = divisor, .weight = 1, .output = kept, .stride = 1});
  digits.push_back({.dim = kept, .extent = extent, .weight = divisor, .output = kept, .stride = rest});
  digits.push_back(
      {.dim = kept, .extent = rest / divisor, .weight = divisor * extent, .output = kept, .stride = divisor});
  std::erase_if(digits, [](const Digit& d) { return d.extent == 1; });
  const auto places = Layout::make(extents, std::move(digits), static_cast<int>(extents.size()));
  if (!places) return std::nullopt;
  const auto map = f->repeat(times, order).map().compose(*places);
  if (!map) return std::nullopt;
  const auto made = Fragment::make(*map, in_.threads);
  return made ? std::optional(*made) : std::nullopt;
}

// Threads along the other dimensions; those that these have no points for take blocks of the axis. Nothing
// where other extents or the blocks are ragged.
std::optional<Fragment> CandidateIterations::axis_in_registers(const std::vector<int64_t>& extents, int axis,
                                                               int64_t vector) const {
  const int64_t along = extents[static_cast<size_t>(axis)];
  int64_t others = 1;
  for (int64_t extent : extents) others *= extent;
  others /= along;
  const bool crossed = axis + 1 == static_cast<int>(extents.size());
  if (others % vector != 0 || (vector > 1 && (crossed || extents.back() % vector != 0))) return std::nullopt;
  const int64_t blocks = std::max<int64_t>(1, in_.threads / (others / vector));
  if (along % blocks != 0 || (blocks > 1 && in_.threads % (others / vector) != 0)) return std::nullopt;
  // Coordinates: the place in the block first, the number of the block after it.
  std::vector<int64_t> placed = {along / blocks, blocks};
  std::vector<Digit> digits = {
      {.dim = axis, .extent = along / blocks, .weight = 1, .output = 0, .stride = 1},
      {.dim = axis, .extent = blocks, .weight = along / blocks, .output = 1, .stride = 1}};
  for (int d = 0; d < static_cast<int>(extents.size()); ++d) {
    if (d == axis) continue;
    const int64_t extent = extents[static_cast<size_t>(d)];
    digits.push_back(
        {.dim = d, .extent = extent, .weight = 1, .output = static_cast<int>(placed.size()), .stride = 1});
    placed.push_back(extent);
  }
  std::erase_if(digits, [](const Digit& d) { return d.extent == 1; });
  const auto places = Layout::make(extents, std::move(digits), static_cast<int>(placed.size()));
  if (!places) return std::nullopt;
  const auto map = Fragment::row_major_vectors(placed, in_.threads, vector).map().compose(*places);
  if (!map) return std::nullopt;
  const auto made = Fragment::make(*map, in_.threads);
  return made ? std::optional(*made) : std::nullopt;
}

std::vector<Fragment> CandidateIterations::of(const KernelOp& op) const {
  std::vector<int64_t> extents = iteration_extents(in_.program, op);
  std::vector<Fragment> list;
  if (extents.empty()) {
    list.push_back(Fragment::replicated({}, in_.threads));
    return list;
  }
  const std::map<int, int64_t> dims = vector_dims(op);
  const std::set<KeptDigit> permuted = permuted_digits(op);
  for (auto it = dims.rbegin(); it != dims.rend(); ++it) {
    const auto [dim, block] = *it;
    int64_t extent = extents[static_cast<size_t>(dim)];
    for (int64_t vector = in_.target.has_block_threads() ? in_.target.vector_bytes : 1; vector >= 1;
         vector /= 2) {
      if (extent % vector != 0) continue;
      if (auto f = vectors_along(extents, dim, vector)) list.push_back(std::move(*f));
      for (const KeptDigit& digit : permuted)
        if (auto f = digit_in_registers(extents, dim, vector, digit)) list.push_back(std::move(*f));
      if (block > 0 && vector > 1 && block % vector == 0)
        if (auto f = vectors_in_blocks(extents, dim, vector, block)) list.push_back(std::move(*f));
    }
  }
  if (op.scan && op.scan->axis >= 0 && in_.target.has_block_threads())
    for (int64_t vector = in_.target.vector_bytes; vector >= 1; vector /= 2)
      if (auto f = axis_in_registers(extents, op.scan->axis, vector)) list.push_back(std::move(*f));
  return list;
}

const std::vector<FormId>& CandidateIterations::forms_of(const KernelOp& op) {
  const auto [it, fresh] = forms_of_.try_emplace({iteration_extents(in_.program, op), vector_dims(op),
                                                  op.scan ? op.scan->axis : -1, permuted_digits(op)});
  if (fresh)
    for (const Fragment& f : of(op)) it->second.push_back(forms_.id_of(f));
  return it->second;
}

}  // namespace tilegen::infer
