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
  const auto ask = [&](const std::string& words) {
    if (text.ends_with("}"))
      text.insert(text.size() - 1, ", " + words);
    else
      text += " {" + words + "}";
  };
  if (text.starts_with("gemm ") && states_threads_ && others_.chance(2)) {  // four warps of 32 lanes
    const std::string warps = others_.pick({"[4, 1]", "[2, 2]", "[1, 4]"});
    if (!options_.for_amd) ask("warps = " + warps);
  }
  if (text.starts_with("copy ") && !text.ends_with("}") && others_.chance(12))
    ask(others_.pick({"matrix_stores = false", "transposing = false", "computed_first = false",
                      "engine = loop", "engine = vector_copy", "engine = register_copy",
                      "preamble = false"}));
  if (text.starts_with("reduce ") && text.find(" by ") == std::string::npos && others_.chance(4))
    ask(others_.pick({"chains = 1", "chains = 2", "engine = lane_reduce", "engine = loop"}));
  if (text.starts_with("parallel ") && text.ends_with(" {") && text.find(" with {") == std::string::npos &&
      others_.chance(12)) {
    const std::string asked = others_.pick(
        {"unmasked_version = false", "mask_parts = 1", "transposing = false", "cache = evict_first"});
    if (!options_.for_amd || !asked.starts_with("cache"))
      text.insert(text.size() - 2, " with {" + asked + "}");
  }
  // A sort is made of loops, which are printed: it has no path.
  return r_.chance(3) && !text.starts_with("sort ") ? "label " + fresh("l") + ": " + text : text;
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
  std::vector<std::string> parts;
  if (grid_.size() == 2 && r_.chance(2))
    parts.emplace_back(r_.pick({"raster = column_major", "raster = grouped, group = 2"}));
  else
    parts.emplace_back(r_.pick({"min_blocks = 1", "persistence = none"}));
  // Of the series that makes no other statement another one. Orders that pipelines alone can have are asked
  // for there (random_pipeline.h).
  if (others_.chance(3)) {
    const std::string registers = others_.pick({"registers = 64", "registers = 128", "registers = 255"});
    if (!options_.for_amd) parts.push_back(registers);
  }
  if (others_.chance(3) && !parts[0].starts_with("raster"))
    parts.emplace_back(grid_.size() == 2 ? "raster = by_die, dies = 2" : "raster = row_major");
  if (others_.chance(20) && !parts[0].starts_with("persistence"))
    parts.emplace_back(others_.pick({"persistence = static", "persistence = dynamic"}));
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? " with {" : ", ") + part;
  return text + "}";
}

}  // namespace tilegen::differential
