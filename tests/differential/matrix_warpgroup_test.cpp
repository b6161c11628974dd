// Products of warpgroups (wgmma on tiles that the copy engine brings): the plain matrix product, its layouts,
// tiles, numbers of k steps, ragged shapes and epilogues. Each program is seen to be planned that way where
// it should be.
#include <algorithm>
#include <array>

#include "hopper_plan.h"
#include "matrix.h"

namespace tilegen::differential {
namespace {

// 128 x 64 tiles of 64 k, rows along k.
struct Product : GemmProgram {
  Product() {
    tb = true;
    m = 128, k = 64;
    threads = 256, stages = 3;
  }
  void of(const std::string& in, const std::string& result, const std::string& of_sum) {
    a = b = in;
    out = result;
    sum = of_sum;
  }
};

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
  plan::KernelSchedule k;
  if (std::string why = plan_on_hopper(text, k); !why.empty()) return why;
  for (const plan::OpPlan& op : k.ops)
    if (op.engine == plan::Engine::mma || op.engine == plan::Engine::warpgroup_mma)
      return plan::engine_name(*op.engine);
  return "none";
}

using Shapes = std::vector<std::array<int64_t, 3>>;

// Whole numbers, whose sums every type holds; `reals`: within the error of a sum of products below 1, each
// relatively wrong by `error`.
void run_product(const Product& g, const Shapes& shapes, bool reals = false, double error = 0) {
  const std::string text = gemm_text(g);
  ASSERT_EQ(engine_of_product(text), "warpgroup_mma") << text;
  Subject subject(text, covering(targets(), text));
  ASSERT_EQ(subject.invalid(), "") << text;
  uint64_t seed = 1;
  for (const auto& [m, n, k] : shapes) {
    Launch l;
    l.dims = {{"m", m}, {"n", n}, {"k", k}};
    if (g.batched) l.dims["batch"] = 2;
    l.seed = seed++;
    l.magnitude = 4;
    l.bound = Bound::of_sum(ir::DType::f16, 4, 1);
    if (reals) {
      l.data = Data::reals;
      l.magnitude = 1;
      l.bound = Bound::of_sum(*ir::dtype_from_name(g.sum), k + 1, 1);
      l.bound.absolute += static_cast<double>(k) * error;
    }
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
  run_product(
      {},
      {{136, 72, 72}, {1, 8, 8}, {200, 56, 200}, {129, 65, 136}, {130, 63, 64}, {40, 48, 65}, {33, 31, 7}});
}

// Sums that begin with what the result holds; every product adds to them. One warpgroup, stores by threads
// and by the engine.
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
  const std::array<const char*, 3> types[] = {
      {"f16", "f32", "f32"},  {"bf16", "bf16", "f32"}, {"bf16", "f32", "f32"},
      {"e4m3", "f16", "f32"}, {"e5m2", "f32", "f32"},  {"i8", "i32", "i32"},
      {"u8", "i32", "i32"},   {"f16", "f16", "f16"},   {"f16", "f32", "f16"}};
  for (const auto& [in, out, sum] : types) {
    Product g;
    g.of(in, out, sum);
    run_product(g, {{136, 72, 144}});
    if (HasFailure()) return;
  }
}

// Sums in f16, two to a register: rounded after every instruction.
TEST(WarpgroupProduct, SumsInHalf) {
  Product g;
  g.of("f16", "f16", "f16");
  run_product(g, {{136, 72, 144}, {128, 64, 0}}, true);
  if (HasFailure()) return;
  g.n = 256;
  g.tb = false;
  g.epilogue = R"(parallel i, j in $M, $N {
    c[i, j] = max(c[i, j] * 0.5f16, 0.0f16)
  })";
  run_product(g, {{136, 264, 200}});
}

// f32 operands of which the instructions leave out 13 bits.
TEST(WarpgroupProduct, SinglePrecisionAsTf32) {
  Product g;
  g.of("f32", "f32", "f32");
  g.attrs = "tf32";
  for (const int64_t k : {32, 64, 16}) {
    g.k = k;
    run_product(g, {{136, 72, 100}, {128, 64, 32}});
    run_product(g, {{136, 72, 100}}, true, 0x1p-8);
    if (HasFailure()) return;
  }
}

// Sums of 8-bit floats that are added up outside of the instructions: one chunk of k, parts of one, several;
// as wide as a warpgroup's columns and in parts; from zero and from what the result holds.
TEST(WarpgroupProduct, PromotedSums) {
  struct Tile {
    int64_t m, n, k;
    int threads;
  };
  for (const Tile& t :
       {Tile{128, 64, 128, 256}, {128, 128, 64, 256}, {64, 256, 128, 128}, {128, 256, 256, 256}}) {
    Product g;
    g.of("e4m3", "f32", "f32");
    g.b = "e5m2";
    g.attrs = "promote";
    g.m = t.m, g.n = t.n, g.k = t.k, g.threads = t.threads;
    g.stages = 2;
    run_product(g, {{t.m + 8, t.n + 16, 3 * t.k - 16}, {t.m, t.n, 0}});
    if (HasFailure()) return;
    run_product(g, {{t.m, t.n, 2 * t.k}}, true);
    if (HasFailure()) return;
  }
  Product g;
  g.of("e4m3", "f32", "f32");
  g.attrs = "clear, promote";
  g.allocs = "alloc total: fragment f32[$M, $N]";
  g.begin = "fill total, 0.0f32\n  fill c, 7.0f32";
  g.second = "parallel i, j in $M, $N {\n      total[i, j] = total[i, j] + c[i, j]\n    }";
  g.result = "total";
  run_product(g, {{136, 80, 144}});
}

// Operands along m or n of types that the instructions read along k only are turned on the way: one, the
// other, both; one warpgroup and two; with promoted sums, few rows, and two products of a loop.
TEST(WarpgroupProduct, TurnedOperands) {
  struct Case {
    const char *in, *sum, *attrs;
    int64_t m, n, k;
    int threads;
  };
  const Case cases[] = {
      {"e4m3", "f32", "", 128, 128, 128, 256},        {"i8", "i32", "", 64, 128, 64, 128},
      {"u8", "i32", "", 128, 64, 128, 256},           {"f32", "f32", "tf32", 128, 64, 32, 256},
      {"e5m2", "f32", "promote", 128, 128, 128, 256}, {"f32", "f32", "tf32", 64, 128, 64, 128}};
  for (const Case& c : cases)
    for (int flags = 0; flags < 4; ++flags) {
      Product g;
      g.of(c.in, c.sum, c.sum);
      g.attrs = c.attrs;
      g.m = c.m, g.n = c.n, g.k = c.k, g.threads = c.threads;
      g.ta = (flags & 1) != 0;
      g.tb = (flags & 2) != 0;
      if (!g.ta && g.tb) continue;
      const bool all = long_run() || &c == cases;
      if (!all && flags != (&c - cases) % 2) continue;
      Shapes shapes = {{c.m + 16, c.n + 16, 3 * c.k + 16}, {c.m, c.n, 0}};
      if (long_run() || flags == 3) shapes.push_back({2 * c.m, 2 * c.n, c.k});
      run_product(g, shapes);
      if (HasFailure()) return;
    }
  Product g;
  g.of("e4m3", "f32", "f32");
  g.m = 32, g.n = 128, g.k = 128;
  g.tb = false;
  run_product(g, {{32, 144, 272}});
  if (HasFailure()) return;
  g.m = 128, g.n = 64;
  g.tensors = "tensor V: e4m3[k, n] readonly\n";
  g.allocs = "alloc v: shared e4m3[$K, $N]\n  alloc d: fragment f32[$M, $N]";
  g.begin = "fill c, 0.0f32\n  fill d, 0.0f32";
  g.second = "copy V[ko * $K :+ $K, bx * $N :+ $N] -> v\n    gemm a, v -> d";
  g.epilogue = R"(parallel i, j in $M, $N {
    c[i, j] = c[i, j] + 2.0f32 * d[i, j]
  })";
  run_product(g, {{144, 80, 272}, {128, 64, 128}});
}

// Fewer rows than the instructions have: B takes the place of A.
TEST(WarpgroupProduct, FewRows) {
  for (const int64_t m : {16, 32, 8, 96}) {
    Product g;
    g.m = m;
    g.n = m == 96 ? 64 : 128;
    g.threads = m == 96 ? 128 : 256;
    g.tb = m != 32;
    run_product(g, {{m, g.n, 64}, {2 * m - 3, g.n + 8, 200}});
    if (HasFailure()) return;
  }
  Product g;
  g.of("e4m3", "f16", "f32");
  g.b = "e5m2";
  g.m = 16, g.n = 128, g.k = 128;
  g.attrs = "promote";
  g.tensors = "tensor bias: f16[n] readonly";
  g.epilogue = R"(parallel i, j in $M, $N {
    if bx * $N + j < n {
      c[i, j] = c[i, j] + cast(f32, bias[bx * $N + j])
    }
  })";
  run_product(g, {{13, 136, 272}});
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
  const Tile tiles[] = {{64, 64, 64, 128, 2},   {64, 256, 32, 128, 2},  {128, 128, 32, 256, 4},
                        {192, 96, 64, 384, 2},  {256, 64, 64, 256, 2},  {128, 96, 48, 256, 3},
                        {128, 160, 16, 256, 2}, {128, 256, 64, 256, 3}, {64, 40, 128, 128, 2}};
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

// Scales of a row, a column and the whole, and results of every width.
TEST(WarpgroupProduct, ScaledResults) {
  const char* scaled = R"(parallel i, j in $M, $N {
    d[i, j] = $value
  })";
  struct Case {
    const char *in, *sum, *scaled, *out, *scales, *value;
  };
  const Case cases[] = {
      {"e4m3", "f32", "f32", "bf16", "tensor s: f32[m] readonly\ntensor t: f32[n] readonly",
       "c[i, j] * s[by * $M + i] * t[bx * $N + j]"},
      {"e4m3", "f32", "f32", "e4m3", "tensor s: f32[1] readonly", "c[i, j] * s[0]"},
      {"f16", "f32", "f32", "e5m2", "tensor s: f32[m] readonly", "c[i, j] * s[by * $M + i]"},
      {"i8", "i32", "f16", "f16", "tensor s: f32[n] readonly",
       "cast(f16, cast(f32, c[i, j]) * s[bx * $N + j])"},
      {"i8", "i32", "f32", "f32", "tensor s: f32[m] readonly", "cast(f32, c[i, j]) * s[by * $M + i]"},
      {"u8", "i32", "i8", "i8", "scalar s: f32",
       "cast(i8, max(min(cast(f32, c[i, j]) * 0.25f32, 127.0f32), -128.0f32))"},
  };
  for (const Case& c : cases)
    for (const bool batched : {false, true}) {
      if (!long_run() && batched != ((&c - cases) % 2 == 1)) continue;
      Product g;
      g.of(c.in, c.out, c.sum);
      g.batched = batched;
      g.k = 128;
      g.allocs = "alloc d: fragment " + std::string(c.scaled) + "[$M, $N]";
      g.tensors = c.scales;
      g.epilogue = replaced(scaled, {{"value", c.value}});
      g.result = "d";
      run_product(g, {{128, 64, 64}, {136, 80, 144}, {130, 72, 144}});
      if (HasFailure()) return;
    }
}

// Sums beyond what an 8-bit float holds become its largest.
TEST(WarpgroupProduct, ResultsSaturate) {
  for (const char* out : {"e4m3", "e5m2"}) {
    Product g;
    g.of("f16", out, "f32");
    g.epilogue = R"(parallel i, j in $M, $N {
    c[i, j] = c[i, j] * 4096.0f32
  })";
    run_product(g, {{136, 80, 144}});
    if (HasFailure()) return;
  }
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
  Product g;
  g.batched = true;
  g.tb = false;
  const std::string text = gemm_text(g);
  ASSERT_EQ(engine_of_product(text), "warpgroup_mma");
  Subject subject(text, covering(targets(), text));
  for (const auto& [b, m, n, k] :
       std::vector<std::array<int64_t, 4>>{{3, 136, 72, 136}, {2, 128, 64, 64}, {1, 0, 64, 64}}) {
    Launch l;
    l.dims = {{"batch", b}, {"m", m}, {"n", n}, {"k", k}};
    l.magnitude = 4;
    l.bound = Bound::of_sum(ir::DType::f16, 4, 1);
    expect_agree(subject, text, l);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tilegen::differential
