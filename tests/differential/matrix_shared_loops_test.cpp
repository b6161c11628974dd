// Products of few blocks and long loops, which blocks of a cluster share: as planned, on every executor.
#include "hopper_plan.h"
#include "matrix.h"

namespace tilegen::differential {
namespace {

struct FewBlocks {
  int m, n, k;
  const char *in = "f16", *sum = "f32", *out = "f16";
  int tile_m = 64, tile_n = 64;
  const char* epilogue = "";
};

std::string text_of(const FewBlocks& p) {
  const auto n = [](int v) { return std::to_string(v); };
  const std::string tm = n(p.tile_m), tn = n(p.tile_n), in = p.in;
  return "tl 1 program few_blocks\ntensor A: " + in + "[" + n(p.m) + ", " + n(p.k) +
         "] readonly\ntensor B: " + in + "[" + n(p.n) + ", " + n(p.k) + "] readonly\ntensor C: " + p.out +
         "[" + n(p.m) + ", " + n(p.n) + "]\nkernel gemm grid (by: ceildiv(" + n(p.m) + ", " + tm +
         "), bx: ceildiv(" + n(p.n) + ", " + tn + ")) threads " + n(2 * p.tile_m) + " {\n  alloc a: shared " +
         in + "[" + tm + ", 64]\n  alloc b: shared " + in + "[" + tn + ", 64]\n  alloc c: fragment " + p.sum +
         "[" + tm + ", " + tn + "]\n  fill c, 0" + (std::string(p.sum) == "f32" ? ".0f32" : "i32") +
         "\n  pipelined ko in 0 .. ceildiv(" + n(p.k) + ", 64) {\n    copy A[by * " + tm + " :+ " + tm +
         ", ko * 64 :+ 64] -> a\n    copy B[bx * " + tn + " :+ " + tn +
         ", ko * 64 :+ 64] -> b\n    gemm a, b -> c {transpose_b}\n  }\n" + p.epilogue +
         "  copy c -> C[by * " + tm + " :+ " + tm + ", bx * " + tn + " :+ " + tn + "]\n}\n";
}

void run(const FewBlocks& p) {
  const std::string text = text_of(p);
  plan::KernelSchedule planned;
  ASSERT_EQ(plan_on_hopper(text, planned), "");
  ASSERT_TRUE(planned.split && planned.split->parts > 1) << text;
  std::vector<std::string> targets = executable_targets();
  targets.push_back("sim:sm_90a");
  Subject subject(text, targets);
  ASSERT_EQ(subject.invalid(), "") << text;
  Launch l;
  l.magnitude = 2;
  l.bound = Bound::of_sum(*ir::dtype_from_name(p.out), 4, 1);
  expect_agree(subject, text, l);
}

TEST(SharedLoops, OfOneTileAndMore) {
  run({64, 64, 4096});
  run({128, 192, 2048, "bf16", "f32", "bf16"});
}

// Parts of other lengths, and tiles that hang over.
TEST(SharedLoops, OfRaggedShapes) { run({100, 72, 3000}); }

TEST(SharedLoops, OfTwoWarpgroups) { run({128, 64, 4096, "f16", "f32", "f32", 128, 64}); }

TEST(SharedLoops, OfWholeNumbers) { run({64, 64, 8192, "i8", "i32", "i32"}); }

// What follows the loop is the first block's alone.
TEST(SharedLoops, WithWorkOnTheSums) {
  FewBlocks p{64, 64, 4096, "f16", "f32", "f32"};
  p.epilogue = "  parallel i, j in 64, 64 {\n    c[i, j] = max(c[i, j] * 0.5f32 + 1.0f32, 0.0f32)\n  }\n";
  run(p);
}

}  // namespace
}  // namespace tilegen::differential
