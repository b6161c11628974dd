// Products: types, transposes, ragged shapes, tile sizes, operands in shared memory and fragments.
#include <algorithm>
#include <array>

#include "matrix.h"

namespace tilegen::differential {
namespace {

struct GemmTypes {
  DType a, b, c;
  bool tf32 = false, promote = false;
};
constexpr GemmTypes kGemmTypes[] = {
    {DType::f16, DType::f16, DType::f16},
    {DType::f16, DType::f16, DType::f32},
    {DType::bf16, DType::bf16, DType::f32},
    {DType::f32, DType::f32, DType::f32},
    {DType::f64, DType::f64, DType::f64},
    {DType::i8, DType::i8, DType::i32},
    {DType::i8, DType::u8, DType::i32},
    {DType::u8, DType::i8, DType::i32},
    {DType::u8, DType::u8, DType::i32},
    {DType::e4m3, DType::e4m3, DType::f32},
    {DType::e4m3, DType::e5m2, DType::f32},
    {DType::e5m2, DType::e4m3, DType::f32},
    {DType::e5m2, DType::e5m2, DType::f32},
    {DType::f32, DType::f32, DType::f32, true},
    {DType::e4m3, DType::e5m2, DType::f32, false, true},
    {DType::e4m3fnuz, DType::e4m3fnuz, DType::f32},
    {DType::e4m3fnuz, DType::e5m2fnuz, DType::f32},
    {DType::e5m2fnuz, DType::e4m3fnuz, DType::f32},
    {DType::e5m2fnuz, DType::e5m2fnuz, DType::f32},
};

struct GemmCase {
  GemmTypes types;
  bool ta = false, tb = false, clear = false;
  std::string a_scope = "shared", b_scope = "shared";
  int64_t m = 64, n = 64, k = 32;  // tile
};

// With `clear` the sum over k is kept in a second tile, so that what clear drops would show.
std::string text_of(const GemmCase& g) {
  GemmProgram p;
  p.a = ir::dtype_name(g.types.a), p.b = ir::dtype_name(g.types.b), p.sum = p.out = ir::dtype_name(g.types.c);
  p.ta = g.ta, p.tb = g.tb;
  for (const auto& [on, name] :
       {std::pair(g.clear, "clear"), {g.types.tf32, "tf32"}, {g.types.promote, "promote"}})
    if (on) p.attrs += (p.attrs.empty() ? "" : ", ") + std::string(name);
  p.a_scope = g.a_scope, p.b_scope = g.b_scope;
  p.m = g.m, p.n = g.n, p.k = g.k;
  p.allocs = "alloc total: fragment " + p.sum + "[$M, $N]";
  p.begin = "copy C[by * $M :+ $M, bx * $N :+ $N] -> c\n  fill total, $zero";
  if (g.clear) p.second = "parallel i, j in $M, $N {\n      total[i, j] = total[i, j] + c[i, j]\n    }";
  if (g.clear) p.epilogue = "copy total -> c";
  return gemm_text(p);
}

Launch gemm_launch(const GemmCase& g, int64_t m, int64_t n, int64_t k, uint64_t seed, Data data) {
  Launch l;
  l.dims = {{"m", m}, {"n", n}, {"k", k}};
  l.seed = seed;
  l.data = data;
  // Whole numbers whose sums C's type holds exactly; f16 sums are kept below 2048.
  l.magnitude = data == Data::reals               ? 1
                : g.types.c == DType::f16         ? 2
                : ir::dtype_bits(g.types.a) == 16 ? 8
                                                  : 32;
  if (data == Data::reals && ir::is_float(g.types.c)) {
    // Products of numbers up to 1, and the old C; f16 also rounds once per tile of k.
    l.bound = Bound::of_sum(g.types.c, k + g.k + 2, 1);
    // An executor may round operands to tf32 or not.
    if (g.types.tf32) l.bound.absolute += static_cast<double>(k) * 0x1p-10;
  }
  return l;
}

// `reals` too: of the first shape, and of all in the long form.
void run_gemm(const GemmCase& g, const std::vector<std::array<int64_t, 3>>& shapes, bool reals) {
  const std::string text = text_of(g);
  std::vector<std::string> targets = covering(targets_with_simulators(), text);
  if (ir::is_storage_only(g.types.a) && targets.back() == "sim:sm_80")
    targets.emplace_back("sim:sm_90");  // which has instructions for them
  Subject subject(text, std::move(targets));
  uint64_t seed = 1;
  for (const auto& [m, n, k] : shapes) {
    expect_agree(subject, text, gemm_launch(g, m, n, k, seed++, Data::integers));
    if (reals && ir::is_float(g.types.c) && (long_run() || seed == 2))
      expect_agree(subject, text, gemm_launch(g, m, n, k, seed++, Data::reals));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Gemm, TypesAndTransposes) {
  int row = 0;
  for (const GemmTypes& types : kGemmTypes) {
    const int one_more = row % 8, other = row % 2 == 0 ? 3 : 4;
    ++row;
    for (int flags = 0; flags < 8; ++flags) {
      if (!long_run() && flags != one_more && flags != other) continue;
      const GemmCase g{types, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0};
      run_gemm(g, {{33, 17, 64}, {64, 64, 3}}, true);
    }
  }
}

TEST(Gemm, RaggedShapes) {
  const int64_t extents[] = {0, 1, 3, 17, 31, 64, 65, 100, 130};
  for (const GemmTypes& types : {kGemmTypes[1], kGemmTypes[3], kGemmTypes[5]}) {
    std::vector<std::array<int64_t, 3>> shapes;
    for (size_t i = 0; i < std::size(extents); ++i) {
      const auto e = [&](size_t step) { return extents[(i * step + step) % std::size(extents)]; };
      shapes.push_back({extents[i], e(2), e(4)});
    }
    run_gemm({types}, shapes, false);
  }
}

TEST(Gemm, TileSizes) {
  const std::array<int64_t, 3> tiles[] = {{48, 80, 16}, {80, 48, 20}, {100, 100, 10}, {1, 64, 32},
                                          {64, 1, 32},  {3, 5, 7},    {128, 32, 64},  {17, 33, 9},
                                          {8, 24, 1},   {96, 96, 4},  {1, 1, 1},      {31, 130, 12}};
  constexpr size_t kTypes = std::size(kGemmTypes);
  int at = 0;
  for (const auto& [m, n, k] : tiles)
    for (size_t t = 0; t < kTypes; ++t, ++at) {
      const size_t tile = static_cast<size_t>(at) / kTypes;
      if (!long_run() && t != tile && t != (tile + std::size(tiles)) % kTypes) continue;
      const GemmCase g{kGemmTypes[t], at % 2 == 1, at % 3 == 1, false, "shared", "shared", m, n, k};
      run_gemm(g, {{m + 5, n + 3, 2 * k + 1}}, false);
    }
}

TEST(Gemm, OperandsInFragments) {
  for (size_t t = 0; t < std::size(kGemmTypes); ++t)
    for (int where = 1; where < 4; ++where) {
      if (!long_run() && where != static_cast<int>(t) % 3 + 1) continue;
      const GemmCase g{kGemmTypes[t],
                       t % 2 == 1,
                       t % 4 < 2,
                       false,
                       where & 1 ? "fragment" : "shared",
                       where & 2 ? "fragment" : "shared",
                       32,
                       48,
                       16};
      run_gemm(g, {{40, 50, 33}}, false);
    }
}

// Parts of tiles: operands at offsets that a loop moves, quarters of C.
TEST(Gemm, PartsOfBuffers) {
  for (const std::string type : {"f16", "f32", "f64"})
    expect_agree(replaced(R"(tl 1 program parts
tensor A: $t[64, 64] readonly
tensor B: $t[64, 64] readonly
tensor C: $t[64, 64]

kernel k grid (g: 1) {
  alloc a: shared $t[64, 64]
  alloc b: shared $t[64, 64]
  alloc c: fragment $t[64, 64]
  copy A -> a
  copy B -> b
  copy C -> c
  serial q in 0 .. 4 {
    gemm a[0 :+ 32, q * 16 :+ 16], b[q * 16 :+ 16, 0 :+ 32] -> c[0 :+ 32, 0 :+ 32]
  }
  gemm a[32 :+ 32, 0 :+ 64], b[0 :+ 64, 0 :+ 32] -> c[32 :+ 32, 0 :+ 32]
  gemm a[1 :+ 32, 3 :+ 32], b[5 :+ 32, 7 :+ 32] -> c[32 :+ 32, 32 :+ 32]
  copy c -> C
}
)",
                          {{"t", type}}),
                 seeds({1, 2}));
}

// Dimensions of extent 1 around the matrices.
TEST(Gemm, MatricesAmongMoreDimensions) {
  for (const std::string type : {"f32", "f64"})
    expect_agree(replaced(R"(tl 1 program regions
tensor A: $t[40, 60] readonly
tensor B: $t[60, 50] readonly
tensor C: $t[2, 40, 50]

kernel k grid (g: 1) {
  alloc a: shared $t[40, 1, 60]
  alloc b: shared $t[1, 60, 50]
  alloc c: fragment $t[1, 40, 50]
  copy A -> a
  copy B -> b
  copy C[1 :+ 1, 0 :+ 40, 0 :+ 50] -> c
  gemm a, b -> c
  copy c -> C[0 :+ 1, 0 :+ 40, 0 :+ 50]
}
)",
                          {{"t", type}}),
                 seeds({1, 2}));
}

}  // namespace
}  // namespace tilegen::differential
