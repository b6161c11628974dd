// Which loops blocks may share, and the reasons why others they may not.
#include "analysis/split_loop.h"

#include <gtest/gtest.h>

#include "check/check_program.h"
#include "ir/text.h"

namespace tilegen::analysis {
namespace {

constexpr const char* kHeader = R"(tl 1 program p
dim n <= 4096
tensor A: f16[64, n] readonly
tensor B: f16[n, 64] readonly
tensor C: f32[64, 64]
tensor D: f32[64, 64]
tensor T: i64[4]

kernel k grid (b: 1) threads 128 {
  alloc a: shared f16[64, 64]
  alloc s: shared f16[64, 64]
  alloc c: fragment f32[64, 64]
  alloc d: fragment f32[64, 64]
  alloc h: fragment f16[64, 64]
  alloc t: fragment f32[64]
)";
constexpr const char* kLoop = R"(  pipelined ko in 0 .. ceildiv(n, 64) {
    copy A[0 :+ 64, ko * 64 :+ 64] -> a
    copy B[ko * 64 :+ 64, 0 :+ 64] -> s
    gemm a, s -> c
  }
)";

// The refusal, or the sums, of the kernel's first loop.
std::string shared(const std::string& body) {
  auto p = ir::parse_program(kHeader + body + "}\n", "test.tl", Limits{});
  EXPECT_TRUE(p) << p.error().to_text();
  if (!p) return "";
  for (const Diagnostic& d : check::check_program(*p, Limits{})) ADD_FAILURE() << d.to_text();
  const KernelOps ops = collect_kernel_ops(*p, 0);
  for (ir::StmtId id : p->kernels[0].body)
    if (const auto* loop = p->as<ir::Loop>(id); loop && loop->kind != ir::LoopKind::parallel) {
      const SplitLoop found = split_loop(*p, 0, ops, id);
      std::string sums;
      for (ValueId v : found.sums) sums += (sums.empty() ? "" : " ") + ops.values[v].name;
      return found.refusal.empty() ? sums : found.refusal;
    }
  return "no loop";
}

std::string with_loop(const std::string& before, const std::string& inside, const std::string& after) {
  return shared(before +
                "  pipelined ko in 0 .. ceildiv(n, 64) {\n    copy A[0 :+ 64, ko * 64 :+ 64] -> a\n" +
                "    copy B[ko * 64 :+ 64, 0 :+ 64] -> s\n" + inside + "  }\n" + after);
}

TEST(SplitLoop, OneThatLeavesSumsOfProducts) {
  EXPECT_EQ(shared(std::string("  fill c, 0.0f32\n") + kLoop + "  copy c -> C\n"), "k:c");
  EXPECT_EQ(with_loop("  fill c, 0.0f32\n  fill d, 0.0f32\n", "    gemm a, s -> c\n    gemm s, a -> d\n",
                      "  copy c -> C\n  copy d -> D\n"),
            "k:c k:d");
}

TEST(SplitLoop, WhateverTheIterationsDoWithinThemselves) {
  EXPECT_EQ(
      with_loop("  fill c, 0.0f32\n",
                "    copy a -> h\n    parallel i, j in 64, 64 {\n      h[i, j] = h[i, j] * 2.0f16\n    }\n"
                "    gemm h, s -> c\n",
                "  copy c -> C\n"),
      "k:c");
}

TEST(SplitLoop, OneWhoseIterationsReadWhatStoodBefore) {
  EXPECT_EQ(with_loop("  fill c, 0.0f32\n  fill h, 2.0f16\n", "    gemm h, s -> c\n", "  copy c -> C\n"),
            "k:c");
}

// As products with scales of blocks do.
TEST(SplitLoop, OneThatAddsElementByElement) {
  const auto adding = [](const std::string& value) {
    return with_loop(
        "  fill c, 0.0f32\n",
        "    gemm a, s -> d {clear}\n    parallel i, j in 64, 64 {\n      c[i, j] = " + value + "\n    }\n",
        "  copy c -> C\n");
  };
  for (const char* sum : {"c[i, j] + d[i, j] * 0.5f32", "d[i, j] + c[i, j]", "c[i, j] - d[i, j]"})
    EXPECT_EQ(adding(sum), "k:c") << sum;
  for (const char* other : {"d[i, j] - c[i, j]", "c[i, j] + c[i, j]", "c[i, j] + d[i, j] * c[i, j]",
                            "max(c[i, j], d[i, j])", "c[i, j] * d[i, j]"})
    EXPECT_EQ(adding(other), "its iterations hand 'c' to each other, other than as a sum") << other;
}

TEST(SplitLoop, NotOneThatBeginsWithMoreThanZero) {
  EXPECT_EQ(shared(std::string("  fill c, 1.0f32\n") + kLoop + "  copy c -> C\n"),
            "'c' is not 0 when it begins");
  EXPECT_EQ(shared(std::string("  copy D -> c\n") + kLoop + "  copy c -> C\n"),
            "'c' is not 0 when it begins");
}

TEST(SplitLoop, NotOneThatScalesItsSums) {
  EXPECT_EQ(
      with_loop(
          "  fill c, 0.0f32\n",
          "    parallel i, j in 64, 64 {\n      c[i, j] = c[i, j] * 0.5f32\n    }\n    gemm a, s -> c\n",
          "  copy c -> C\n"),
      "its iterations hand 'c' to each other, other than as a sum");
}

TEST(SplitLoop, NotOneWhoseIterationsFollowEachOther) {
  const std::string handed = "its iterations hand 'h' to each other, other than as a sum";
  EXPECT_EQ(
      with_loop(
          "  fill c, 0.0f32\n  fill h, 1.0f16\n",
          "    gemm h, s -> c\n    parallel i, j in 64, 64 {\n      h[i, j] = h[i, j] + 1.0f16\n    }\n",
          "  copy c -> C\n"),
      handed);
  // The last iteration's.
  EXPECT_EQ(with_loop("  fill c, 0.0f32\n  fill t, 0.0f32\n",
                      "    gemm a, s -> c\n    reduce c -> t {kind=max, axis=1}\n", "  copy c -> C\n"),
            "its iterations hand 'c' to each other, other than as a sum");
}

TEST(SplitLoop, NotOneThatWritesTensors) {
  EXPECT_EQ(with_loop("  fill c, 0.0f32\n", "    gemm a, s -> c\n    copy c -> D\n", "  copy c -> C\n"),
            "k/ko/copy#2 writes tensor 'D'");
  EXPECT_EQ(shared(std::string("  fill c, 0.0f32\n  copy c -> D\n") + kLoop + "  copy c -> C\n"),
            "k/copy#0 writes tensor 'D'");
}

TEST(SplitLoop, NotOneWithAProductBesideIt) {
  EXPECT_EQ(shared(std::string("  fill c, 0.0f32\n") + kLoop +
                   "  copy c -> h\n  gemm h, s -> d {clear}\n  copy d -> C\n"),
            "k/gemm#0 is a product beside it");
}

TEST(SplitLoop, NotOneThatNothingFollowsOrOfUnknownLength) {
  EXPECT_EQ(with_loop("  fill c, 0.0f32\n", "    gemm a, s -> c\n", ""), "nothing follows it");
  EXPECT_EQ(shared("  fill c, 0.0f32\n  serial ko in 0 .. T[0] {\n    copy A[0 :+ 64, ko * 64 :+ 64] -> a\n"
                   "    copy B[ko * 64 :+ 64, 0 :+ 64] -> s\n    gemm a, s -> c\n  }\n  copy c -> C\n"),
            "its bounds are read from memory that the kernel may write");
}

TEST(SplitLoop, NotSumsThatOtherBlocksCannotRead) {
  EXPECT_EQ(with_loop("  fill h, 0.0f16\n", "    gemm a, s -> h\n", "  copy h -> C\n"),
            "'h' has elements of other than 4 bytes");
}

}  // namespace
}  // namespace tilegen::analysis
