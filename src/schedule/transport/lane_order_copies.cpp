#include "schedule/transport/lane_order_copies.h"

#include <algorithm>
#include <bit>

namespace tilegen::schedule {

using layout::Digit;

namespace {

// The iteration's dimension of each of the tile's; empty: the copy fills a part of it, or another way round.
std::vector<int> dims_of_tile(const analysis::KernelOp& op, const layout::Layout& tile) {
  const auto access = std::find_if(op.view.accesses.begin(), op.view.accesses.end(),
                                   [](const ops::ElementAccess& a) { return a.write; });
  if (access == op.view.accesses.end() || access->any_unknown() || !access->terms.empty()) return {};
  std::vector<int> dims;
  for (int d = 0; d < tile.rank(); ++d) {
    const auto at = static_cast<size_t>(d);
    const int dim = access->dim_of[at];
    if (access->offset[at] != 0) return {};
    if (tile.shape()[at] > 1 && (dim < 0 || op.view.extents[static_cast<size_t>(dim)] != tile.shape()[at]))
      return {};
    dims.push_back(dim);
  }
  return dims;
}

// Digits that reach over `boundary` become two; false where they cannot.
bool split_at(std::vector<Digit>& digits, int64_t boundary) {
  for (size_t i = 0; i < digits.size(); ++i) {
    Digit& low = digits[i];
    if (low.stride >= boundary || low.stride * low.extent <= boundary) continue;
    const int64_t below = boundary / low.stride;
    if (boundary % low.stride != 0 || low.extent % below != 0) return false;
    Digit high = low;
    high.extent = low.extent / below;
    high.weight = low.weight * below;
    high.stride = boundary;
    low.extent = below;
    digits.push_back(high);
  }
  return true;
}

// The swizzle moves whole bits of digits.
bool bits_apart(const layout::Layout& tile) {
  const layout::Swizzle& s = tile.swizzle();
  if (s.none()) return true;
  const int64_t low = (int64_t{1} << s.base) / tile.element_bytes(), end = low << s.bits;
  return std::all_of(tile.digits().begin(), tile.digits().end(), [&](const Digit& d) {
    if (d.stride >= end || d.stride * d.extent <= low) return true;
    return std::has_single_bit(static_cast<uint64_t>(d.stride)) &&
           std::has_single_bit(static_cast<uint64_t>(d.extent));
  });
}

}  // namespace

LaneOrderCopy lane_order_copy(const analysis::KernelOp& op, const layout::Layout& tile, int element_bytes,
                              int64_t threads, const target::Target& t) {
  LaneOrderCopy c;
  const int64_t word = t.async_copy_bytes.front(), together = word / element_bytes;
  const std::vector<int> dims = dims_of_tile(op, tile);
  const int64_t elements = tile.elements();
  if (together < 1 || word % element_bytes != 0)
    c.why =
        "an element has " + std::to_string(element_bytes) + " bytes, a lane moves " + std::to_string(word);
  else if (dims.empty())
    c.why = "it fills a part of its tile, or turns it";
  else if (tile.output_extent(0) != elements || !tile.is_injective() || !bits_apart(tile))
    c.why = "the tile has gaps, and lanes fill words side by side";
  else if (elements % (together * threads) != 0)
    c.why = "the tile's " + std::to_string(elements / together) + " words are no whole ones of each of " +
            std::to_string(threads) + " threads";
  if (!c.why.empty()) return c;
  std::vector<Digit> digits = tile.digits();
  if (!split_at(digits, together) || !split_at(digits, together * threads)) {
    c.why = "the tile's rows do not divide into the words of all threads";
    return c;
  }
  for (Digit& d : digits) {
    d.dim = dims[static_cast<size_t>(d.dim)];
    const bool of_thread = d.stride >= together && d.stride < together * threads;
    d.output = of_thread ? layout::kThread : layout::kRegister;
    if (d.stride >= together) d.stride /= of_thread ? together : threads;
  }
  const auto map = layout::Layout::make(op.view.extents, std::move(digits), 2);
  auto iteration = map ? layout::Fragment::make(*map, threads) : Expected<layout::Fragment>(map.error());
  if (!iteration) {
    c.why = iteration.error().diagnostics[0].message;
    return c;
  }
  c.iteration = std::move(*iteration);
  c.vector = together;
  return c;
}

}  // namespace tilegen::schedule
