// Sparse products and compressions: types, words, transposes, scopes, ragged shapes; any places, and those
// that compress finds.
#include <random>

#include "hopper_plan.h"
#include "matrix.h"

namespace tilegen::differential {
namespace {

struct SparseTypes {
  DType a, b, c;
};
constexpr SparseTypes kSparseTypes[] = {
    {DType::f16, DType::f16, DType::f32},   {DType::bf16, DType::bf16, DType::f32},
    {DType::f16, DType::f16, DType::f16},   {DType::i8, DType::i8, DType::i32},
    {DType::u8, DType::i8, DType::i32},     {DType::e4m3, DType::e5m2, DType::f32},
    {DType::f32, DType::f32, DType::f32},   {DType::f64, DType::f64, DType::f64},
    {DType::e5m2, DType::e4m3, DType::f32}, {DType::e4m3fnuz, DType::e4m3fnuz, DType::f32},
};

// Of any places in any order, no two of a group equal.
std::vector<int64_t> words(int64_t count, int bits, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t word = 0;
    for (int bit = 0; bit < bits; bit += 4) {
      const uint64_t first = random() % 4, second = (first + 1 + random() % 3) % 4;
      word |= (first | second << 2) << bit;
    }
    all.push_back(static_cast<int64_t>(word));
  }
  return all;
}

constexpr const char* kProduct = R"(tl 1 program p
dim m <= 512
dim n <= 512
dim k <= 512
tensor V: $a[$v_shape] readonly
tensor P: $word[m, ceildiv(k, $K) * $WORDS] readonly
tensor B: $b[$b_shape] readonly
tensor C: $c[m, n]
kernel multiply grid (by: ceildiv(m, $M), bx: ceildiv(n, $N)) threads $threads {
  alloc v: $a_scope $a[$v_tile]
  alloc p: $p_scope $word[$M, $WORDS]
  alloc b: $b_scope $b[$b_tile]
  alloc c: fragment $c[$M, $N]
  copy C[by * $M :+ $M, bx * $N :+ $N] -> c
  pipelined ko in 0 .. ceildiv(k, $K) stages 2 {
    copy V[$v_box] -> v
    copy P[by * $M :+ $M, ko * $WORDS :+ $WORDS] -> p
    copy B[$b_box] -> b
    gemm_sparse v, b, p -> c {transpose_a = $ta, transpose_b = $tb}
  }
  copy c -> C[by * $M :+ $M, bx * $N :+ $N]
}
)";

TEST(Sparse, TypesWordsTransposesScopes) {
  int at = 0;
  for (const SparseTypes& t : kSparseTypes)
    for (DType word : {DType::u8, DType::u16, DType::u32})
      for (const bool ta : {false, true})
        for (const bool tb : {false, true}) {
          ++at;
          if (!long_run() && at % 5 != 0) continue;
          const int64_t tile_m = at % 3 == 0 ? 32 : 64, tile_n = at % 4 == 0 ? 32 : 64, tile_k = 64;
          const int bits = ir::dtype_bits(word);
          const auto text = [](int64_t v) { return std::to_string(v); };
          const std::string half = text(tile_k / 2), k = text(tile_k), m = text(tile_m), n = text(tile_n);
          const std::string v_k = "ko * " + half + " :+ " + half, v_m = "by * " + m + " :+ " + m,
                            b_k = "ko * " + k + " :+ " + k, b_n = "bx * " + n + " :+ " + n;
          const std::string v_extent = "ceildiv(k, " + k + ") * " + half;
          const std::string program =
              replaced(kProduct, {{"v_shape", ta ? v_extent + ", m" : "m, " + v_extent},
                                  {"b_shape", tb ? "n, k" : "k, n"},
                                  {"v_tile", ta ? half + ", " + m : m + ", " + half},
                                  {"b_tile", tb ? n + ", " + k : k + ", " + n},
                                  {"v_box", ta ? v_k + ", " + v_m : v_m + ", " + v_k},
                                  {"b_box", tb ? b_n + ", " + b_k : b_k + ", " + b_n},
                                  {"a_scope", at % 7 == 0 ? "fragment" : "shared"},
                                  {"p_scope", at % 3 == 0 ? "fragment" : "shared"},
                                  {"b_scope", at % 11 == 0 ? "fragment" : "shared"},
                                  {"threads", at % 2 ? "128" : "64"},
                                  {"ta", ta ? "true" : "false"},
                                  {"tb", tb ? "true" : "false"},
                                  {"word", ir::dtype_name(word)},
                                  {"WORDS", text(tile_k / bits)},
                                  {"a", ir::dtype_name(t.a)},
                                  {"b", ir::dtype_name(t.b)},
                                  {"c", ir::dtype_name(t.c)},
                                  {"M", m},
                                  {"N", n},
                                  {"K", k}});
          std::vector<Launch> launches;
          for (const auto& [rows, columns, depth] :
               {std::array<int64_t, 3>{70, 33, 100}, {64, 64, 128}, {5, 1, 3}, {9, 9, 0}}) {
            Launch l;
            l.dims = {{"m", rows}, {"n", columns}, {"k", depth}};
            l.seed = static_cast<uint64_t>(at);
            l.magnitude = t.c == DType::f16 ? 2 : ir::dtype_bits(t.a) == 16 ? 8 : 32;
            l.whole["P"] = words(rows * ((depth + tile_k - 1) / tile_k) * (tile_k / bits), bits, l.seed);
            launches.push_back(l);
          }
          expect_agree(program, launches);
          if (HasFailure()) return;
        }
}

// Products of warpgroups, whose words come by the copy engine beside the operands: types, transposes, A in
// registers, steps of k from none to several, ragged shapes.
constexpr const char* kOfWarpgroups = R"(tl 1 program p
dim m <= 512
dim n <= 512
dim k <= 1024
tensor V: $a[$v_shape] readonly
tensor P: u16[m, ceildiv(k, 128) * 8] readonly
tensor B: $b[$b_shape] readonly
tensor C: $c[m, n]
kernel multiply grid (by: ceildiv(m, 128), bx: ceildiv(n, $N)) threads $threads {
  alloc v: shared $a[$v_tile]
  alloc p: shared u16[128, 8]
  alloc b: shared $b[$b_tile]
  alloc c: fragment $c[128, $N]
  fill c, 0
  pipelined ko in 0 .. ceildiv(k, 128) stages 3 {
    copy V[$v_box] -> v
    copy P[by * 128 :+ 128, ko * 8 :+ 8] -> p
    copy B[$b_box] -> b
    gemm_sparse v, b, p -> c {transpose_a = $ta, transpose_b = $tb}
  }
  copy c -> C[by * 128 :+ 128, bx * $N :+ $N]
}
)";

TEST(Sparse, ProductsOfWarpgroups) {
  struct Case {
    SparseTypes types;
    bool ta = false, tb = true;
    int64_t n = 64;
    int threads = 256;
  };
  const Case cases[] = {
      {{DType::f16, DType::f16, DType::f32}},
      {{DType::f16, DType::f16, DType::f32}, true, false, 128},
      {{DType::bf16, DType::bf16, DType::f32}, false, false, 128, 128},
      {{DType::f16, DType::f16, DType::f16}, false, true, 32},
      {{DType::i8, DType::i8, DType::i32}},
      {{DType::u8, DType::i8, DType::i32}, false, true, 128},
      {{DType::e4m3, DType::e5m2, DType::f32}, false, true, 64, 128},
  };
  std::vector<std::string> targets = executable_targets();
  targets.push_back("sim:sm_90a");
  for (const Case& c : cases) {
    const auto text = [](int64_t v) { return std::to_string(v); };
    const std::string n = text(c.n), v_k = "ko * 64 :+ 64", v_m = "by * 128 :+ 128", b_k = "ko * 128 :+ 128",
                      b_n = "bx * " + n + " :+ " + n, v_extent = "ceildiv(k, 128) * 64";
    const std::string program =
        replaced(kOfWarpgroups, {{"v_shape", c.ta ? v_extent + ", m" : "m, " + v_extent},
                                 {"b_shape", c.tb ? "n, k" : "k, n"},
                                 {"v_tile", c.ta ? "64, 128" : "128, 64"},
                                 {"b_tile", c.tb ? n + ", 128" : "128, " + n},
                                 {"v_box", c.ta ? v_k + ", " + v_m : v_m + ", " + v_k},
                                 {"b_box", c.tb ? b_n + ", " + b_k : b_k + ", " + b_n},
                                 {"threads", text(c.threads)},
                                 {"ta", c.ta ? "true" : "false"},
                                 {"tb", c.tb ? "true" : "false"},
                                 {"a", ir::dtype_name(c.types.a)},
                                 {"b", ir::dtype_name(c.types.b)},
                                 {"c", ir::dtype_name(c.types.c)},
                                 {"N", n}});
    plan::KernelSchedule k;
    ASSERT_EQ(plan_on_hopper(program, k), "");
    const plan::OpPlan* op = plan::find_op(k, "multiply/ko/gemm_sparse#0");
    ASSERT_NE(op, nullptr);
    EXPECT_TRUE(op->atom.starts_with("wgmma.sp.m64n")) << op->atom << " " << op->reason << "\n" << program;
    Subject subject(program, covering(targets, program));
    ASSERT_EQ(subject.invalid(), "") << program;
    uint64_t seed = 1;
    for (const auto& [rows, columns, depth] : {std::array<int64_t, 3>{128, 64, 128},
                                               {256, 128, 512},
                                               {200, 72, 384},
                                               {128, 64, 0},
                                               {136, 80, 656}}) {
      Launch l;
      l.dims = {{"m", rows}, {"n", columns}, {"k", depth}};
      l.seed = seed++;
      l.magnitude = c.types.c == DType::f16 ? 2 : 4;
      l.whole["P"] = words(rows * ((depth + 127) / 128) * 8, 16, l.seed);
      expect_agree(subject, program, l);
      if (HasFailure()) return;
    }
  }
}

TEST(Sparse, Compressions) {
  int at = 0;
  for (DType t : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::u8, DType::e4m3,
                  DType::e5m2, DType::e4m3fnuz, DType::e5m2fnuz})
    for (DType word : {DType::u8, DType::u16, DType::u32})
      for (const std::string scope : {"shared", "fragment"}) {
        ++at;
        if (!long_run() && at % 3 != 0) continue;
        Launch numbers;
        numbers.dims = {{"m", 37}, {"k", 112}};  // whole vectors
        numbers.seed = static_cast<uint64_t>(at);
        numbers.magnitude = 3;
        Launch any = numbers;
        any.dims["k"] = 100;
        any.data = Data::bit_patterns;  // infinities and NaNs
        expect_agree(replaced(R"(tl 1 program p
dim m <= 512
dim k <= 512
tensor X: $type[m, k] readonly
tensor V: $type[m, ceildiv(k, 64) * 32]
tensor P: $word[m, ceildiv(k, 64) * $words]
kernel multiply grid (by: ceildiv(m, 16), bk: ceildiv(k, 64)) threads $threads {
  alloc x: $scope $type[16, 64]
  alloc v: $to $type[16, 32]
  alloc p: $scope $word[16, $words]
  copy X[by * 16 :+ 16, bk * 64 :+ 64] -> x
  compress x -> v, p
  copy v -> V[by * 16 :+ 16, bk * 32 :+ 32]
  copy p -> P[by * 16 :+ 16, bk * $words :+ $words]
}
)",
                              {{"type", ir::dtype_name(t)},
                               {"words", std::to_string(64 / ir::dtype_bits(word))},
                               {"word", ir::dtype_name(word)},
                               {"scope", scope},
                               {"to", at % 2 ? "shared" : "fragment"},
                               {"threads", std::to_string(32 << at % 3)}}),
                     {numbers, any});
        if (HasFailure()) return;
      }
}

// A matrix that is sparse already is its compression: both products of it are one, and so what is left of
// their difference is 0.
TEST(Sparse, ProductOfACompressionIsTheDenseOne) {
  for (const std::string word : {"u8", "u16", "u32"}) {
    Launch l;
    l.dims = {{"m", 70}, {"n", 40}, {"k", 100}};
    l.magnitude = 8;
    expect_agree(replaced(R"(tl 1 program p
dim m <= 512
dim n <= 512
dim k <= 512
tensor A: f16[m, k] readonly
tensor B: f16[k, n] readonly
tensor C: f32[m, n]
kernel multiply grid (by: ceildiv(m, 64), bx: ceildiv(n, 64)) threads 128 {
  alloc a: shared f16[64, 64]
  alloc v: shared f16[64, 32]
  alloc p: shared $word[64, $words]
  alloc b: shared f16[64, 64]
  alloc dense: fragment f32[64, 64]
  alloc sparse: fragment f32[64, 64]
  fill dense, 0
  fill sparse, 0
  serial ko in 0 .. ceildiv(k, 64) {
    parallel i, j in 64, 64 {
      a[i, j] = select((j + j // 4) % 4 < 2, A[by * 64 + i, ko * 64 + j], 0)
    }
    copy B[ko * 64 :+ 64, bx * 64 :+ 64] -> b
    compress a -> v, p
    gemm a, b -> dense
    gemm_sparse v, b, p -> sparse
  }
  parallel i, j in 64, 64 {
    assert dense[i, j] == sparse[i, j], "one product"
    C[by * 64 + i, bx * 64 + j] = sparse[i, j]
  }
}
)",
                          {{"words", word == "u8"    ? "8"
                                     : word == "u16" ? "4"
                                                     : "2"},
                           {"word", word}}),
                 {l});
  }
}

}  // namespace
}  // namespace tilegen::differential
