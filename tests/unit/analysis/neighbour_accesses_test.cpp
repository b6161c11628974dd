// Runs of elements beside each other, however their indices are written, and what is none.
#include "analysis/neighbour_accesses.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace tilegen::analysis {
namespace {

// "X 4+ X 2 Y! 2": buffers, `!` where written, widths, `+` where the next point's run follows.
std::string runs(const std::string& body, int64_t bytes = 16) {
  auto p = ir::parse_program(
      "tl 1 program p\ndim n divisible 4\ntensor X: f32[n, n] readonly\ntensor H: f16[n, 512] readonly\n"
      "tensor I: i32[n] readonly\ntensor Y: f32[n, n]\nkernel k grid (b: n) threads 128 {\n"
      "  alloc s: shared f32[4, 512]\n  parallel t in 128 {\n" +
          body + "\n  }\n}\n",
      "test.tl", Limits{});
  EXPECT_TRUE(p) << p.error().to_text();
  if (!p) return "";
  const KernelOps ops = collect_kernel_ops(*p, 0);
  std::string text;
  for (const NeighbourRun& r : neighbour_runs(*p, *ops.ops.begin(), bytes))
    text += (text.empty() ? "" : " ") + p->buffer(r.buffer).name + (r.write ? "! " : " ") +
            std::to_string(r.width()) + (r.continued ? "+" : "");
  return text;
}

TEST(NeighbourRuns, AreFoundInEverySpelling) {
  EXPECT_EQ(runs("unroll i in 0 .. 4 { Y[b, 4 * t + i] = X[b, 4 * t + i] }"), "X 4+ Y! 4+");
  EXPECT_EQ(
      runs("Y[b, t] = X[b, t * 4 + 3] + X[b, (t * 2 + 1) * 2] + X[b, 2 * t + 2 * t + 1] + X[b, t << 2]"),
      "X 4+");
  EXPECT_EQ(runs("unroll i in 0 .. 4 { s[i, t] = X[b, 8 * t + i] }"), "X 4");
  EXPECT_EQ(runs("unroll i in 0 .. 8 { Y[b, 8 * t + i] = cast(f32, H[b, 8 * t + i]) }"), "H 8+ Y! 4 Y! 4");
  EXPECT_EQ(runs("unroll i in 0 .. 4 { Y[b, 4 * t + i] = X[b, 4 * t + i] }", 8), "X 2 X 2 Y! 2 Y! 2");
}

TEST(NeighbourRuns, OfWhatIsLeft) {
  EXPECT_EQ(runs("unroll i in 0 .. 3 { Y[b, 4 * t + i + 1] = X[b, 4 * t + i] }"), "X 2 Y! 2");
  EXPECT_EQ(runs("unroll i in 0 .. 4 { Y[b, 6 * t + i] = 0 }"), "Y! 2 Y! 2");
  EXPECT_EQ(runs("Y[b, t] = s[0, 0] + s[0, 1] + s[0, 2] + s[0, 3] + s[1, 4]"), "s 4");
}

TEST(NeighbourRuns, AreNoneOtherwise) {
  EXPECT_EQ(runs("unroll i in 0 .. 4 { Y[b, 3 * t + i] = 0 }"), "");                         // begin anywhere
  EXPECT_EQ(runs("unroll i in 0 .. 4 { Y[4 * t + i, b] = 0 }"), "");                         // lie across
  EXPECT_EQ(runs("unroll i in 0 .. 4 { if X[b, t] > 0 { Y[b, 4 * t + i] = 0 } }"), "");      // conditions
  EXPECT_EQ(runs("unroll i in 0 .. 4 { s[0, t] = X[b, 4 * cast(i64, I[t]) + i] }"), "");     // by memory
  EXPECT_EQ(runs("Y[b, t] = X[b, 4 * t] + X[b + 1, 4 * t + 1] + X[b + 2, 4 * t + 2]"), "");  // rows
}

}  // namespace
}  // namespace tilegen::analysis
