// Copies: casts, overhang, strides, transposes, large tensors.
#include <algorithm>
#include <array>

#include "matrix.h"

namespace tilegen::differential {
namespace {

// One kernel per destination type: tensor -> tile -> other tile -> tensor, over the edge on both sides.
TEST(Copy, CastsBetweenAllTypes) {
  for (DType from : kStored) {
    std::string text =
        "tl 1 program casts\ndim n\ntensor X: " + std::string(ir::dtype_name(from)) + "[n] readonly\n";
    std::string kernels;
    for (DType to : kStored) {
      // All from and to f32, and of the others some of each row and column.
      const bool some = (static_cast<int>(from) + 3 * static_cast<int>(to)) % 8 != 0;
      if (!long_run() && some && from != DType::f32 && to != DType::f32) continue;
      const std::string name = ir::dtype_name(to);
      text += "tensor Y_" + name + ": " + name + "[n]\ntensor Z_" + name + ": " + name + "[n]\n";
      kernels += replaced(R"(kernel k_$t grid (b: ceildiv(n, 40)) {
  alloc x: shared $f[40]
  alloc y: fragment $t[40]
  copy X[b * 40 :+ 40] -> x
  copy x -> y
  copy y -> Y_$t[b * 40 :+ 40]
  copy X[b * 40 :+ 40] -> Z_$t[b * 40 :+ 40]
  parallel i in 40 {
    if i % 3 == 0 {
      y[i] = cast($t, X[b * 40 + i])
      Z_$t[b * 40 + i] = y[i]
    }
  }
}
)",
                          {{"t", name}, {"f", ir::dtype_name(from)}});
    }
    std::vector<Launch> launches;
    for (int64_t n : {1, 40, 77, 1000}) {
      Launch l;
      l.dims = {{"n", n}};
      l.seed = static_cast<uint64_t>(n);
      l.data = Data::bit_patterns;
      launches.push_back(l);
    }
    expect_agree(text + kernels, launches);
    if (HasFailure()) return;
  }
}

TEST(Copy, OverhangOnEverySide) {
  const char* text = R"(tl 1 program overhang
dim m
dim n
dim row
dim col <= 1000
tensor X: $t[m, n] readonly
tensor Y: $t[m, n]
tensor Z: $t[3, n, m]

kernel k grid (by: ceildiv(m, $M) + 2, bx: ceildiv(n, $N) + 2) {
  alloc t: $s $t[$M, $N]
  alloc u: shared $t[1, $N, $M]
  copy X[by * $M - row :+ $M, bx * $N - col :+ $N] -> t
  copy t -> Y[by * $M - $M :+ $M, bx * $N - $N :+ $N]
  parallel i, j in $M, $N {
    u[0, j, i] = t[i, j]
  }
  copy u -> Z[1 :+ 1, bx * $N - $N :+ $N, by * $M - $M :+ $M]
}
)";
  int at = 0;
  for (const std::string type : {"f32", "u8", "f16", "f64", "bool"})
    for (const auto& [m, n] : {std::pair<int, int>{16, 16}, {5, 33}, {64, 3}, {1, 48}}) {
      if (!long_run() && at++ % 2 == 1) continue;
      const std::string program = replaced(text, {{"t", type},
                                                  {"M", std::to_string(m)},
                                                  {"N", std::to_string(n)},
                                                  {"s", at % 3 ? "fragment" : "shared"}});
      std::vector<Launch> launches;
      for (const auto& d : {std::array<int64_t, 4>{16, 16, 0, 0},
                            {65, 33, 0, 1},
                            {7, 50, 3, 16},
                            {100, 1, 16, 1},
                            {0, 9, 1, 1},
                            {33, 64, 70, 5},
                            {9, 20, 0, 0}}) {
        Launch l;
        l.dims = {{"m", d[0]}, {"n", d[1]}, {"row", d[2]}, {"col", d[3]}};
        l.seed = static_cast<uint64_t>(++at);
        launches.push_back(l);
      }
      expect_agree(program, launches);
      if (HasFailure()) return;
    }
}

// Enough data for stores that bypass the caches, on several threads.
TEST(Copy, LargeTensors) {
  const char* text = R"(tl 1 program large
dim n
tensor X: $t[n, 1024] readonly
tensor Y: $t[n, 1024]
tensor Z: $t[n, 1024]

kernel k grid (b: ceildiv(n, 16)) {
  alloc x: fragment $t[16, 1024]
  copy X[b * 16 :+ 16, 0 :+ 1024] -> x
  parallel i, j in 16, 1024 {
    x[i, j] = x[i, j] + X[b * 16 + i, 1023 - j]
  }
  copy x -> Y[b * 16 :+ 16, 0 :+ 1024]
  parallel i, j in 16, 1024 {
    Z[b * 16 + i, j] = x[i, j] - X[b * 16 + i, j]
  }
}
)";
  for (const std::string type : {"f32", "i8", "f16"}) {
    Launch l;
    l.dims = {{"n", 100}};
    Launch threads = l;
    threads.max_threads = 4;
    threads.seed = 2;
    expect_agree(replaced(text, {{"t", type}}), {l, threads});
  }
}

TEST(Copy, StridesAndTransposes) {
  const char* text = R"(tl 1 program strides
dim m
dim n
dim pitch
tensor X: $t[m, n] strides [pitch, $step] readonly
tensor Y: $t[n, m] strides [1, pitch]
tensor Z: $t[m, n] strides [$step, m * $step]

kernel k grid (by: ceildiv(m, 24), bx: ceildiv(n, 20)) {
  alloc t: shared $t[24, 20]
  alloc u: fragment $t[20, 24]
  copy X[by * 24 :+ 24, bx * 20 :+ 20] -> t
  parallel j, i in 20, 24 {
    u[j, i] = t[i, j]
  }
  copy u -> Y[bx * 20 :+ 20, by * 24 :+ 24]
  copy t -> Z[by * 24 :+ 24, bx * 20 :+ 20]
}
)";
  for (const std::string type : {"f32", "i8", "bf16", "i64"})
    for (int64_t step : {1, 2, 3}) {
      std::vector<Launch> launches;
      for (const auto& [m, n] : {std::pair<int64_t, int64_t>{24, 20}, {25, 61}, {7, 3}, {100, 1}}) {
        Launch l;
        l.dims = {{"m", m}, {"n", n}, {"pitch", std::max(n * step, m) + 5}};
        l.seed = static_cast<uint64_t>(m * n);
        launches.push_back(l);
      }
      expect_agree(replaced(text, {{"t", type}, {"step", std::to_string(step)}}), launches);
      if (HasFailure()) return;
    }
}

// One dimension of a region is several of the other: of tensors and tiles of every memory, on either side, at
// the end and in front.
TEST(Copy, DimensionsTogether) {
  const char* text = R"(tl 1 program together
dim l
dim m
dim n
tensor X: $t[l, m, n] readonly
tensor Y: $t[l, m, n]
tensor Z: $t[m, l * n]
tensor U: $t[l * m, n]
tensor S: f32[l, m, n]

kernel k grid (a: ceildiv(l, 2) + 1, b: ceildiv(m, $M), c: ceildiv(n, $N)) {
  alloc t: $s $t[2 * $M, $N]
  alloc u: $s $t[2 * $M * $N]
  alloc v: $f $t[2, $M, $N]
  alloc w: $f $t[$M, 2 * $N]
  alloc f: fragment f32[2 * $M, $N]
  copy X[a * 2 - 1 :+ 2, b * $M :+ $M, c * $N :+ $N] -> t
  copy t -> Y[a * 2 - 1 :+ 2, b * $M :+ $M, c * $N :+ $N]
  copy X[a * 2 - 1 :+ 2, b * $M :+ $M, c * $N :+ $N] -> u
  copy u -> v
  parallel i, j, q in 2, $M, $N {
    w[j, i * $N + q] = v[i, j, q]
  }
  copy w -> Z[b * $M :+ $M, (a * ceildiv(n, $N) + c) * 2 * $N :+ 2 * $N]
  copy v -> U[(a * ceildiv(m, $M) + b) * 2 * $M :+ 2 * $M, c * $N :+ $N]
  parallel i, q in 2 * $M, $N {
    f[i, q] = cast(f32, t[i, q])
  }
  atomic f -> S[a * 2 - 1 :+ 2, b * $M :+ $M, c * $N :+ $N] {kind = max}
}
)";
  int at = 0;
  for (const std::string type : {"f16", "f32", "u8", "f64"})
    for (const auto& [m, n] : {std::pair<int, int>{8, 16}, {4, 64}, {3, 5}, {16, 8}}) {
      ++at;
      if (!long_run() && at % 3 != 1 && m != 3) continue;
      const std::string program = replaced(text, {{"t", type},
                                                  {"M", std::to_string(m)},
                                                  {"N", std::to_string(n)},
                                                  {"s", at % 2 ? "shared" : "fragment"},
                                                  {"f", at % 4 < 2 ? "fragment" : "shared"}});
      std::vector<Launch> launches;
      for (const auto& d :
           {std::array<int64_t, 3>{2, 8, 16}, {3, 9, 33}, {1, 1, 7}, {5, 16, 64}, {0, 4, 4}}) {
        Launch l;
        l.dims = {{"l", d[0]}, {"m", d[1]}, {"n", d[2]}};
        l.seed = static_cast<uint64_t>(++at);
        launches.push_back(l);
      }
      expect_agree(program, launches);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace tilegen::differential
