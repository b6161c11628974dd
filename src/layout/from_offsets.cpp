// Digits are found dimension by dimension along the axes, from the smallest weight on, each as long as
// offsets go on by its stride:
//
//   j: 0 1 2 3 64 65 66 67      digits j/1%4*1, j/4%2*64
//
// and judged on all elements. With a swizzle these are the offsets before it: it is its own inverse.
#include "layout/from_offsets.h"

#include <algorithm>
#include <optional>

#include "support/diag_codes.h"

namespace tilegen::layout {
namespace {

using Offsets = std::vector<int64_t>;

std::vector<int64_t> row_major_strides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// The elements of one axis.
std::vector<Digit> digits_of_axis(const Offsets& offsets, int dim, int64_t extent, int64_t step) {
  std::vector<Digit> digits;
  const auto at = [&](int64_t i) { return offsets[static_cast<size_t>(i * step)]; };
  for (int64_t weight = 1; weight < extent;) {
    const int64_t stride = at(weight);
    int64_t end = weight;  // elements that go on by the stride
    while (end < extent && at(end) == at(end % weight) + end / weight * stride) ++end;
    const int64_t count = end >= extent ? (extent + weight - 1) / weight : end / weight;
    if (count < 2) return {};
    digits.push_back({dim, count, weight, 0, stride});
    weight *= count;
  }
  return digits;
}

std::optional<Layout> sums_of_digits(std::span<const int64_t> shape, const Offsets& offsets, Swizzle swizzle,
                                     int element_bytes) {
  const std::vector<int64_t> steps = row_major_strides(shape);
  std::vector<Digit> digits;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto own = digits_of_axis(offsets, static_cast<int>(d), shape[d], steps[d]);
    if (own.empty() && shape[d] > 1) return std::nullopt;
    digits.insert(digits.end(), own.begin(), own.end());
  }
  for (const Digit& d : digits)
    if (d.stride < 0) return std::nullopt;
  auto l = Layout::make({shape.begin(), shape.end()}, digits, 1, swizzle, element_bytes);
  if (!l) return std::nullopt;
  return std::move(*l);
}

// The first element that the layout has elsewhere; the number of elements where there is none.
size_t first_elsewhere(const Layout& l, std::span<const int64_t> offsets) {
  std::vector<int64_t> index(l.shape().size(), 0);
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (l.offset(index) != offsets[i]) return i;
    for (size_t d = index.size(); d-- > 0 && ++index[d] == l.shape()[d];) index[d] = 0;
  }
  return offsets.size();
}

std::string element_text(std::span<const int64_t> shape, size_t element) {
  const std::vector<int64_t> steps = row_major_strides(shape);
  std::string text;
  for (size_t d = 0; d < shape.size(); ++d)
    text += (d ? ", " : "(") + std::to_string(static_cast<int64_t>(element) / steps[d] % shape[d]);
  return text + ")";
}

Error refused(const std::string& why) {
  return Error(
      DiagCode::schedule_illegal, "", why,
      "write an offset as a sum of parts of the indices, i // 8 * 512 + i % 8 * 64 + j, or with one XOR of "
      "higher bits into lower ones");
}

}  // namespace

Expected<Layout> layout_of_offsets(std::span<const int64_t> shape, std::span<const int64_t> offsets,
                                   int element_bytes) {
  constexpr int kMostBits = 5, kMostBase = 8, kMostShift = 10;
  for (size_t i = 0; i < offsets.size(); ++i)
    if (offsets[i] < 0 || offsets[i] > INT64_MAX / 16)
      return refused("element " + element_text(shape, i) + " is at offset " + std::to_string(offsets[i]));
  if (offsets.empty()) return refused("there are no elements");
  if (offsets[0] != 0)
    return refused("element " + element_text(shape, 0) + " is at offset " + std::to_string(offsets[0]) +
                   ", not at 0");
  const Offsets plain(offsets.begin(), offsets.end());
  const auto first = sums_of_digits(shape, plain, {}, 1);
  const size_t wrong = first ? first_elsewhere(*first, offsets) : 0;
  if (first && wrong == offsets.size()) return *first;
  for (int base = 0; base <= kMostBase; ++base) {
    if ((int64_t{1} << base) % element_bytes != 0) continue;
    for (int bits = 1; bits <= kMostBits; ++bits)
      for (int shift = bits; shift <= kMostShift; ++shift) {
        const Swizzle s{bits, base, shift};
        Offsets before = plain;
        for (int64_t& o : before) o = s.apply(o * element_bytes) / element_bytes;
        const auto l = sums_of_digits(shape, before, s, element_bytes);
        if (l && first_elsewhere(*l, offsets) == offsets.size()) return *l;
      }
  }
  if (!first) return refused("offsets along a dimension do not go on by digits of its index");
  return refused("element " + element_text(shape, wrong) + " is at offset " + std::to_string(offsets[wrong]) +
                 ", and those along each dimension come to another there");
}

Expected<Fragment> fragment_of_places(std::span<const int64_t> shape, std::span<const int64_t> places,
                                      int64_t threads) {
  const auto of_registers = [](const std::string& why) {
    return Error(DiagCode::schedule_illegal, "", why,
                 "write a function of the indices that gives thread * registers + register, each place once, "
                 "or the text of a fragment: \"threads 128 : (64,64) -> [0: ..; 1: ..]\"");
  };
  const auto elements = static_cast<int64_t>(places.size());
  if (threads < 1 || elements % threads != 0)
    return of_registers(std::to_string(elements) + " elements are no whole registers of " +
                        std::to_string(threads) + " threads");
  const int64_t registers = elements / threads;
  const auto flat = layout_of_offsets(shape, places, 1);
  if (!flat) return of_registers(flat.error().diagnostics.front().message);
  if (!flat->swizzle().none()) return of_registers("threads and registers are mixed by XOR");
  std::vector<Digit> digits;
  for (const Digit& d : flat->digits()) {
    if (d.stride == 0) return of_registers("it does not hold each element once: two share a place");
    // Below `registers` a place counts registers, from there on threads.
    const int64_t within =
        d.stride >= registers ? 1 : std::min(d.extent, std::max<int64_t>(registers / d.stride, 1));
    if (d.extent % within != 0 || (d.stride < registers && registers % d.stride != 0) ||
        (d.stride >= registers && d.stride % registers != 0))
      return of_registers("a digit of an index counts registers and threads at once");
    if (within > 1) digits.push_back({d.dim, within, d.weight, kRegister, d.stride});
    if (d.extent / within > 1)
      digits.push_back({d.dim, d.extent / within, d.weight * within, kThread, d.stride * within / registers});
  }
  auto map = Layout::make({shape.begin(), shape.end()}, std::move(digits), 2);
  if (!map) return of_registers(map.error().diagnostics.front().message);
  auto made = Fragment::make(std::move(*map), threads);
  if (!made) return of_registers(made.error().diagnostics.front().message);
  if (made->registers() != registers || made->replicas() != 1 || !made->map().is_bijective())
    return of_registers("it does not hold each element once, in " + std::to_string(registers) +
                        " registers of " + std::to_string(threads) + " threads");
  return made;
}

}  // namespace tilegen::layout
