// The programs of tests/files and launches for them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "executors.h"

namespace tilegen::differential {

inline std::vector<std::filesystem::path> program_files() {
  namespace fs = std::filesystem;
  std::vector<fs::path> list;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(TILEGEN_SOURCE_DIR) / "tests/files"))
    if (entry.path().extension() == ".tl") list.push_back(entry.path());
  std::sort(list.begin(), list.end());
  return list;
}

inline std::string text_of(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// The value nearest to `wanted` that a dim's facts allow.
inline int64_t allowed(const ir::Var& v, int64_t wanted) {
  int64_t value = std::clamp(wanted, v.lower, v.upper);
  value = (value + v.divisor - 1) / v.divisor * v.divisor;
  return value > v.upper ? value - v.divisor : value;
}

// Each dim near the next of the sizes: other sizes for other dims, so that mixing them up shows.
inline Launch launch_near(const ir::Program& p, const std::vector<int64_t>& sizes) {
  Launch launch;
  size_t next = 0;
  for (const ir::Var& v : p.vars)
    if (v.kind == ir::VarKind::dim) launch.dims[v.name] = allowed(v, sizes[next++ % sizes.size()]);
  return launch;
}

}  // namespace tilegen::differential
