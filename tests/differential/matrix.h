// Writing and running the programs of the feature tables: one table per feature, each program compiled once
// and launched on several ragged shapes. A failure prints the program and the launch that disagree.
//   TILEGEN_LONG=1    the whole product of the tables instead of a sample
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "executors.h"
#include "gemm_program.h"

namespace tilegen::differential {

using ir::DType;
using Strings = std::vector<std::string>;

// Where set, takes the programs of the tables and their launches, and nothing is run.
inline std::function<void(const std::string& text, const Launch& launch)> take_case;

inline void expect_agree(Subject& subject, const std::string& text, const Launch& launch) {
  if (take_case) return take_case(text, launch);
  const Outcome o = subject.compare(launch);
  EXPECT_TRUE(o.is_fine()) << kind_name(o.kind) << ": " << o.text << "\n" << to_text({text, launch});
}

inline void expect_agree(const std::string& text, const std::vector<Launch>& launches) {
  Subject subject(text, covering(targets_with_simulators(), text));
  for (const Launch& launch : launches) {
    expect_agree(subject, text, launch);
    if (testing::Test::HasFailure()) return;
  }
}

inline std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (int64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return text;
}
// The parts of a program of one tile that tables have in common: its type, extents of it and of its result,
// the axis, and by the number of the case their memories and the threads.
using Parts = std::vector<std::pair<std::string, std::string>>;
inline Parts tile_parts(DType type, const std::vector<int64_t>& shape, const std::vector<int64_t>& kept,
                        size_t axis, int at, const Parts& more) {
  Parts parts{{"type", ir::dtype_name(type)},
              {"shape", shape_text(shape)},
              {"kept", shape_text(kept)},
              {"scope", at % 3 ? "fragment" : "shared"},
              {"to", at % 5 ? "fragment" : "shared"},
              {"axis", std::to_string(axis)},
              {"threads", std::to_string(32 << at % 4)}};
  parts.insert(parts.end(), more.begin(), more.end());
  return parts;
}

inline std::vector<Launch> seeds(std::initializer_list<uint64_t> list, Data data = Data::integers) {
  std::vector<Launch> launches;
  for (uint64_t seed : list) {
    Launch l;
    l.seed = seed;
    l.data = data;
    launches.push_back(l);
  }
  return launches;
}

// With dim n; each with a seed of its own.
inline std::vector<Launch> launches_of_n(std::initializer_list<int64_t> list, uint64_t seed = 1) {
  std::vector<Launch> launches;
  for (int64_t n : list) {
    Launch l;
    l.dims = {{"n", n}};
    l.seed = static_cast<uint64_t>(n) + seed;
    launches.push_back(l);
  }
  return launches;
}

inline constexpr DType kAll[] = {DType::f16, DType::bf16, DType::f32,    DType::f64, DType::i8,
                                 DType::u8,  DType::i16,  DType::u16,    DType::i32, DType::u32,
                                 DType::i64, DType::u64,  DType::boolean};
// With those that are not computed in.
inline constexpr DType kStored[] = {
    DType::f16,      DType::bf16, DType::f32,     DType::f64,  DType::i8,   DType::u8,
    DType::i32,      DType::i64,  DType::boolean, DType::e4m3, DType::e5m2, DType::e4m3fnuz,
    DType::e5m2fnuz, DType::i16,  DType::u16,     DType::u32,  DType::u64};

}  // namespace tilegen::differential
