// The tiled matrix product that the tables vary: C = A B over tiles of k in a pipelined loop, with what
// stands before the loop, after the product and after the loop given as text.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tilegen::differential {

// "$name" becomes its value; values may hold names that stand later in the list.
inline std::string replaced(std::string text,
                            const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values)
    for (size_t at = 0; (at = text.find("$" + name, at)) != std::string::npos;)
      text.replace(at, name.size() + 1, value);
  return text;
}

struct GemmProgram {
  std::string a = "f16", b = "f16", sum = "f32", out = "f16";
  bool ta = false, tb = false;
  std::string attrs;               // more of the gemm's: "clear, tf32"
  int64_t m = 64, n = 64, k = 32;  // tile
  int threads = 0, stages = 2;     // 0 threads: the planner's choice
  bool batched = false;            // a dimension `batch` before all tensors
  std::string a_scope = "shared", b_scope = "shared";
  std::string sum_shape = "$M, $N";
  std::string tensors, allocs;  // that the texts below need
  std::string begin = "fill c, $zero";
  std::string second;        // after the product
  std::string epilogue;      // after the loop
  std::string result = "c";  // what is copied out
};

// In the texts $M, $N and $K stand for the tile's extents, $zero for that of the sum's type, $at for "bz :+
// 1, " where batched.
std::string gemm_text(const GemmProgram& g);

}  // namespace tilegen::differential
