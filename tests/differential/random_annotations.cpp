// Labels and annotations of random programs: decisions that a target can mostly carry out, of a kernel, a
// tile, a copy, a parallel loop. None changes a result.
#include <algorithm>
#include <bit>

#include "random_generator.h"

namespace tilegen::differential {

// The line with a label in front, or with what the statement asks for.
std::string Generator::annotated(std::string text) {
  if (!annotates_ || in_parallel_) return text;
  constexpr std::string_view kWords[] = {"copy ", "fill ",     "gemm ",   "reduce ",    "scan ", "cumsum ",
                                         "sort ", "parallel ", "serial ", "pipelined ", "if "};
  if (std::none_of(std::begin(kWords), std::end(kWords),
                   [&](std::string_view w) { return text.starts_with(w); }))
    return text;
  if (text.starts_with("copy ") && r_.chance(5))
    text += r_.pick({" {vector = 1}", " {full_tile_version = false}"});
  if (text.starts_with("parallel ") && text.ends_with(" {") && r_.chance(6))
    text.insert(text.size() - 2, " with {unroll = " + std::to_string(r_.pick({1, 2, 4})) + "}");
  return r_.chance(3) ? "label " + fresh("l") + ": " + text : text;
}

// Of a tile that is declared.
std::string Generator::tile_annotation(MemScope scope, DType type, const std::vector<int64_t>& shape) {
  if (!annotates_ || scope != MemScope::shared || shape.size() != 2 || shape[0] == 1 || !r_.chance(3))
    return {};
  const auto columns = static_cast<uint64_t>(shape[1]);
  const int64_t row = shape[1] * ir::dtype_bits(type) / 8;
  if (row % 32 == 0 && shape[0] % 8 == 0 && r_.chance(2))
    return " {swizzle = " + std::to_string(row % 128 == 0 ? 128 : row % 64 == 0 ? 64 : 32) + "}";
  if (std::has_single_bit(columns) && columns > 1 && r_.chance(2))
    return " {layout = (i, j) -> i * " + std::to_string(columns) + " + (j ^ i % " +
           std::to_string(std::min<uint64_t>(columns, 8)) + ")}";
  return " {padding = " + std::to_string(r_.between(1, 9)) + "}";
}

std::string Generator::kernel_annotation() {
  if (!annotates_ || !r_.chance(2)) return {};
  if (grid_.size() == 2 && r_.chance(2))
    return r_.pick({" with {raster = column_major}", " with {raster = grouped, group = 2}"});
  return r_.pick({" with {min_blocks = 1}", " with {persistence = none}"});
}

}  // namespace tilegen::differential
