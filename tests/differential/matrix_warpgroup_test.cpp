// Products of warpgroups (wgmma on tiles that the copy engine brings): the plain matrix product, its layouts, tiles, numbers of
// k steps, ragged shapes and epilogues. Each program is seen to be planned that way where it should be.
#include <algorithm>
#include <array>

#include "driver/compile.h"
#include "ir/text.h"
#include "matrix.h"

namespace tilegen::differential {
namespace {

struct Product {
  std::string in = "f16", out = "f16", sum = "f32";
  bool ta = false, tb = true;
  int64_t m = 128, n = 64, k = 64;  // tile
  int threads = 256, stages = 3;
  std::string sum_shape = "$M, $N";
  std::string begin = "fill c, $zero";
  std::string second;    // behind the product
  std::string epilogue;  // between the loop and the copy out
  std::string tensors;   // that the epilogue reads
  std::string allocs;    // that it needs
};

std::string product_text(const Product& g) {
  std::string attrs = g.ta && g.tb ? " {transpose_a, transpose_b}" : g.ta ? " {transpose_a}" : g.tb ? " {transpose_b}" : "";
  return replaced(
      R"(tl 1 program gemm
dim m
dim n
dim k
tensor A: $in[$ashape] readonly
tensor B: $in[$bshape] readonly
tensor C: $out[m, n]
$tensors
kernel gemm grid (by: ceildiv(m, $M), bx: ceildiv(n, $N)) threads $T {
  alloc a: shared $in[$atile]
  alloc b: shared $in[$btile]
  alloc c: fragment $sum[$shape]
  $allocs
  $begin
  pipelined ko in 0 .. ceildiv(k, $K) stages $S {
    copy A[$aregion] -> a
    copy B[$bregion] -> b
    gemm a, b -> c$attrs
    $second
  }
  $epilogue
  copy c -> C[by * $M :+ $M, bx * $N :+ $N]
}
)",
      {{"ashape", g.ta ? "k, m" : "m, k"},
       {"bshape", g.tb ? "n, k" : "k, n"},
       {"atile", g.ta ? "$K, $M" : "$M, $K"},
       {"btile", g.tb ? "$N, $K" : "$K, $N"},
       {"aregion", g.ta ? "ko * $K :+ $K, by * $M :+ $M" : "by * $M :+ $M, ko * $K :+ $K"},
       {"bregion", g.tb ? "bx * $N :+ $N, ko * $K :+ $K" : "ko * $K :+ $K, bx * $N :+ $N"},
       {"attrs", attrs},
       {"begin", g.begin},
       {"zero", g.sum == "f32" ? "0.0f32" : "0i32"},
       {"sum", g.sum},
       {"shape", g.sum_shape},
       {"second", g.second},
       {"epilogue", g.epilogue},
       {"allocs", g.allocs},
       {"tensors", g.tensors},
       {"in", g.in},
       {"out", g.out},
       {"M", std::to_string(g.m)},
       {"N", std::to_string(g.n)},
       {"K", std::to_string(g.k)},
       {"T", std::to_string(g.threads)},
       {"S", std::to_string(g.stages)}});
}

const std::vector<std::string>& targets() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list = executable_targets();
    list.push_back("sim:sm_90a");
    return list;
  }();
  return names;
}

// Engine of the one gemm of a program.
std::string engine_of_product(const std::string& text) {
  auto program = ir::parse_program(text, "product.tl", Limits{});
  if (!program) return "no program: " + program.error().to_text();
  driver::CompileOptions options;
  options.plan_only = true;
  auto artifact =
      driver::compile(std::make_shared<const ir::Program>(std::move(*program)), *target::find_target("sm_90a"), options);
  if (!artifact) return "no plan: " + artifact.error().to_text();
  for (const plan::OpPlan& op : (*artifact)->schedule.kernels[0].ops)
    if (op.engine == plan::Engine::mma || op.engine == plan::Engine::warpgroup_mma) return plan::engine_name(op.engine);
  return "none";
}

using Shapes = std::vector<std::array<int64_t, 3>>;

void run_product(const Product& g, const Shapes& shapes) {
  const std::string text = product_text(g);
  ASSERT_EQ(engine_of_product(text), "warpgroup_mma") << text;
  Subject subject(text, targets());
  ASSERT_EQ(subject.invalid(), "") << text;
  uint64_t seed = 1;
  for (const auto& [m, n, k] : shapes) {
    Launch l;
    l.dims = {{"m", m}, {"n", n}, {"k", k}};
    l.seed = seed++;
    l.magnitude = 4;
    l.bound = Bound::of_sum(ir::DType::f16, 4, 1);
    expect_agree(subject, text, l);
    if (testing::Test::HasFailure()) return;
  }
}

// Steps of k: none, one, two, three and seven; several tiles for a block.
TEST(WarpgroupProduct, NumbersOfSteps) {
  const Product g;
  run_product(g, {{128, 64, 0}, {128, 64, 64}, {256, 128, 128}, {256, 192, 192}, {384, 128, 448}});
}

TEST(WarpgroupProduct, RaggedShapes) {
  // What the copy engine takes, stores of one row pitch that it does not, and loads that it does not.
  run_product({}, {{136, 72, 72}, {1, 8, 8}, {200, 56, 200}, {129, 65, 136}, {130, 63, 64}, {40, 48, 65}, {33, 31, 7}});
}

// Sums that begin with what the result holds; every product adds to them. One warpgroup, stores by threads and by the engine.
TEST(WarpgroupProduct, AddsToTheResult) {
  Product g;
  g.out = "f32";
  g.m = g.n = 64;
  g.k = 32;
  g.threads = 128;
  g.stages = 2;
  g.begin = "copy C[by * 64 :+ 64, bx * 64 :+ 64] -> c";
  run_product(g, {{64, 64, 32}, {33, 17, 64}, {136, 72, 104}, {70, 66, 0}, {130, 63, 64}});
}

TEST(WarpgroupProduct, Layouts) {
  for (int flags = 0; flags < 4; ++flags) {
    Product g;
    g.ta = (flags & 1) != 0;
    g.tb = (flags & 2) != 0;
    run_product(g, {{264, 72, 136}, {128, 64, 64}});
    if (HasFailure()) return;
  }
}

TEST(WarpgroupProduct, Types) {
  const std::array<const char*, 3> types[] = {{"f16", "f32", "f32"},  {"bf16", "bf16", "f32"}, {"bf16", "f32", "f32"},
                                              {"e4m3", "f16", "f32"}, {"e5m2", "f32", "f32"},  {"i8", "i32", "i32"},
                                              {"u8", "i32", "i32"}};
  for (const auto& [in, out, sum] : types) {
    Product g;
    g.in = in;
    g.out = out;
    g.sum = sum;
    run_product(g, {{136, 72, 144}});
    if (HasFailure()) return;
  }
}

// Two products of one loop share an operand and its slots.
TEST(WarpgroupProduct, TwoInALoop) {
  Product g;
  g.tensors = "tensor V: f16[n, k] readonly\n";
  g.allocs = "alloc v: shared f16[64, 64]\n  alloc d: fragment f32[128, 64]";
  g.begin = "fill c, 0.0f32\n  fill d, 0.0f32";
  g.second = "copy V[bx * 64 :+ 64, ko * 64 :+ 64] -> v\n    gemm a, v -> d {transpose_b}";
  g.epilogue = R"(parallel i, j in 128, 64 {
    c[i, j] = c[i, j] * max(d[i, j], 0.0f32)
  })";
  g.out = "f32";
  run_product(g, {{136, 72, 136}, {128, 64, 0}, {256, 128, 64}});
}

TEST(WarpgroupProduct, Tiles) {
  struct Tile {
    int64_t m, n, k;
    int threads, stages;
  };
  const Tile tiles[] = {{64, 64, 64, 128, 2},  {64, 256, 32, 128, 2}, {128, 128, 32, 256, 4}, {192, 96, 64, 384, 2},
                        {256, 64, 64, 256, 2}, {128, 96, 48, 256, 3}, {128, 160, 16, 256, 2}, {128, 256, 64, 256, 3},
                        {64, 40, 128, 128, 2}};
  int at = 0;
  for (const Tile& t : tiles) {
    Product g;
    g.m = t.m;
    g.n = t.n;
    g.k = t.k;
    g.threads = t.threads;
    g.stages = t.stages;
    g.tb = at++ % 2 == 0;
    run_product(g, {{t.m + 8, t.n + 16, 3 * t.k + 8}});
    if (HasFailure()) return;
  }
}

TEST(WarpgroupProduct, Epilogues) {
  Product g;
  g.tensors = "tensor bias: f16[n] readonly\n";
  g.epilogue = R"(parallel i, j in 128, 64 {
    if bx * 64 + j < n {
      c[i, j] = max(c[i, j] + cast(f32, bias[bx * 64 + j]), 0.0f32)
    }
  })";
  run_product(g, {{136, 72, 136}, {256, 128, 64}});
  if (HasFailure()) return;
  g.tensors = "tensor R: f16[m, n] readonly\n";
  g.allocs = "alloc r: fragment f16[128, 64]";
  g.epilogue = R"(copy R[by * 128 :+ 128, bx * 64 :+ 64] -> r
  parallel i, j in 128, 64 {
    c[i, j] = c[i, j] * 0.5f32 + cast(f32, r[i, j])
  })";
  run_product(g, {{136, 72, 136}, {256, 128, 64}});
}

// Sums in a fragment whose rows and columns are not its last two dimensions.
TEST(WarpgroupProduct, DimensionsOfOneElement) {
  Product g;
  g.sum_shape = "$M, 1, $N";
  run_product(g, {{136, 72, 136}});
}

// Some blocks have no product: the producer of the others takes the branch, too.
TEST(WarpgroupProduct, InABranch) {
  Product g;
  g.begin = "fill c, $zero\n  if by != 1 and k > 70 {";
  g.epilogue = "}";
  run_product(g, {{136, 72, 136}, {256, 128, 64}, {300, 64, 200}});
  if (HasFailure()) return;
  g.begin = "if by != 1 {\n  fill c, $zero";
  g.epilogue = "} else {\n  fill c, 3.0f32\n  }";
  run_product(g, {{136, 72, 136}, {300, 64, 0}});
}

TEST(WarpgroupProduct, Batched) {
  const std::string text = R"(tl 1 program gemm
dim b
dim m
dim n
dim k
tensor A: f16[b, m, k] readonly
tensor B: f16[b, k, n] readonly
tensor C: f16[b, m, n]

kernel gemm grid (bz: b, by: ceildiv(m, 128), bx: ceildiv(n, 64)) threads 256 {
  alloc a: shared f16[128, 64]
  alloc w: shared f16[64, 64]
  alloc c: fragment f32[128, 64]
  fill c, 0.0f32
  pipelined ko in 0 .. ceildiv(k, 64) stages 3 {
    copy A[bz :+ 1, by * 128 :+ 128, ko * 64 :+ 64] -> a
    copy B[bz :+ 1, ko * 64 :+ 64, bx * 64 :+ 64] -> w
    gemm a, w -> c
  }
  copy c -> C[bz :+ 1, by * 128 :+ 128, bx * 64 :+ 64]
}
)";
  ASSERT_EQ(engine_of_product(text), "warpgroup_mma");
  Subject subject(text, targets());
  for (const auto& [b, m, n, k] : std::vector<std::array<int64_t, 4>>{{3, 136, 72, 136}, {2, 128, 64, 64}, {1, 0, 64, 64}}) {
    Launch l;
    l.dims = {{"b", b}, {"m", m}, {"n", n}, {"k", k}};
    l.magnitude = 4;
    l.bound = Bound::of_sum(ir::DType::f16, 4, 1);
    expect_agree(subject, text, l);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tilegen::differential
