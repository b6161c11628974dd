// Tiles that several copies fill, each a part.
#include "hopper_plans.h"
#include "schedule/form/canonical_form.h"

namespace tilegen::schedule {
namespace {

using plan::Engine;

// A product whose tile of A, 128 x 64, `fill` brings.
ir::Program product(const std::string& fill, const std::string& behind = "") {
  auto p = program_from(
      "tl 1 program p\ndim m\ndim n\ndim k divisible 8\ndim pages\ntensor A: f16[m, k] readonly\n"
      "tensor P: f16[pages, 64, k] readonly\ntensor table: i32[m] readonly\ntensor X: f32[m, k] readonly\n"
      "tensor B: f16[n, k] readonly\ntensor C: f16[m, n]\n"
      "kernel q grid (by: ceildiv(m, 128), bx: ceildiv(n, 128)) threads 256 {\n"
      "  alloc As: shared f16[128, 64]\n  alloc Bs: shared f16[128, 64]\n  alloc acc: fragment f32[128, "
      "128]\n"
      "  fill acc, 0.0f32\n  pipelined ko in 0 .. ceildiv(k, 64) stages 3 {\n" +
      fill + "    copy B[bx * 128 :+ 128, ko * 64 :+ 64] -> Bs\n    gemm As, Bs -> acc {transpose_b}\n" +
      behind + "  }\n  copy acc -> C[by * 128 :+ 128, bx * 128 :+ 128]\n}\n");
  EXPECT_TRUE(p) << fill;
  return p ? *p : ir::Program{};
}

const char* const kPages =
    "    copy P[cast(i64, table[by * 2]) :+ 1, 0 :+ 64, ko * 64 :+ 64] -> As[0 :+ 64, 0 :+ 64]\n"
    "    copy P[cast(i64, table[by * 2 + 1]) :+ 1, 0 :+ 64, ko * 64 :+ 64] -> As[64 :+ 64, 0 :+ 64]\n";

int stages(const ir::Program& p, const char* target) {
  auto s = plan_for(p, target);
  EXPECT_TRUE(s) << s.error().to_text();
  return s ? static_cast<int>(s->kernels[0].loops.at(0).num_stages) : 0;
}

TEST(TileParts, TheCopyEngineFillsThemTogether) {
  const ir::Program p = product(kPages);
  const plan::Schedule s = planned(p);
  EXPECT_EQ(engines(s, Engine::tensor_copy), 4);
  EXPECT_EQ(engines(s, Engine::warpgroup_mma), 1);
  ASSERT_EQ(s.kernels[0].pipelines.size(), 1u);
  EXPECT_EQ(s.kernels[0].pipelines[0].slots, 3);
  const std::string code =
      thread::print_thread_program(*lowered_as_planned(p, 0, s.kernels[0], target_named("sm_90a")));
  // Two boxes of 64 rows of As, one of Bs; all of their bytes complete one phase.
  EXPECT_NE(code.find(std::to_string(2 * 128 * 64 * 2)), std::string::npos) << code;
}

TEST(TileParts, RunAheadWhereThreadsCopy) {
  EXPECT_EQ(stages(product(kPages), "sm_80"), 3);
  EXPECT_EQ(stages(product(kPages), "gfx942"), 3);
}

// However the same parts are written.
TEST(TileParts, ALoopOverThemPlansAsTheyDo) {
  const char* const loops[] = {
      "    unroll h in 0 .. 2 {\n      copy P[cast(i64, table[by * 2 + h]) :+ 1, 0 :+ 64, ko * 64 :+ 64] -> "
      "As[h * 64 :+ 64, 0 :+ 64]\n    }\n",
      "    serial h in 1 .. 3 {\n      copy P[cast(i64, table[by * 2 + h - 1]) :+ 1, 0 :+ 64, ko * 64 :+ 64] "
      "-> As[h * 64 - 64 :+ 64, 0 :+ 64]\n    }\n",
      "    unroll h in 0 .. 2 {\n      unroll c in 0 .. 2 {\n        copy P[cast(i64, table[by * 2 + h]) :+ "
      "1, "
      "0 :+ 64, ko * 64 + c * 32 :+ 32] -> As[h * 64 :+ 64, c * 32 :+ 32]\n      }\n    }\n"};
  for (const char* loop : loops) {
    const ir::Program written = product(loop);
    const auto form = canonical_form(written, target_named("sm_90a"));
    ASSERT_TRUE(form) << loop;
    const plan::Schedule s = planned(*form);
    EXPECT_EQ(engines(s, Engine::warpgroup_mma), 1) << loop;
    EXPECT_EQ(s.kernels[0].pipelines.at(0).slots, 3) << loop;
    EXPECT_EQ(stages(*canonical_form(written, target_named("sm_80")), "sm_80"), 3) << loop;
  }
}

// Rows of boxes are as wide as what a copy brings.
TEST(TileParts, ColumnsOfSeveralTensors) {
  const plan::Schedule s =
      planned(product("    copy A[by * 128 :+ 128, ko * 64 :+ 32] -> As[0 :+ 128, 0 :+ 32]\n"
                      "    copy A[by * 128 :+ 128, ko * 64 + 32 :+ 32] -> As[0 :+ 128, 32 :+ 32]\n"));
  EXPECT_EQ(engines(s, Engine::warpgroup_mma), 1);
  EXPECT_EQ(plan::find_value(s.kernels[0], "q:As")->memory->swizzle(), (layout::Swizzle{2, 4, 3}));
  EXPECT_EQ(plan::find_value(s.kernels[0], "q:Bs")->memory->swizzle(), (layout::Swizzle{3, 4, 3}));
}

TEST(TileParts, WhatIsRefusedSaysWhy) {
  const auto why = [](const std::string& fill, const std::string& behind = "") {
    const plan::Schedule s = planned(product(fill, behind));
    EXPECT_EQ(engines(s, Engine::warpgroup_mma), 0) << fill;
    return note_of(s.kernels[0], "q/ko/gemm#0");
  };
  const std::string start = "no warpgroup instructions: tile 'As' does not come by a tensor copy: ";
  const std::string half = "    copy A[by * 128 :+ 64, ko * 64 :+ 64] -> As[0 :+ 64, 0 :+ 64]\n",
                    rest = "    copy A[by * 128 + 64 :+ 64, ko * 64 :+ 64] -> As[64 :+ 64, 0 :+ 64]\n";
  EXPECT_EQ(why(half), start + "it fills only a part of its tile");
  EXPECT_EQ(why("    copy A[by * 128 :+ 128, ko * 64 :+ 64] -> As\n" + half),
            start + "several operations write the same of it");
  EXPECT_EQ(why(half + "    copy A[by * 128 + 64 :+ 32, ko * 64 :+ 64] -> As[64 :+ 32, 0 :+ 64]\n"),
            start + "its copies fill only a part of it");
  EXPECT_EQ(
      why(half + "    copy A[by * 128 + 64 :+ 64, ko * 64 :+ 64] -> As[(by % 2) * 64 :+ 64, 0 :+ 64]\n"),
      start + "several operations write it, at places that are not known by number");
  EXPECT_EQ(why("    if ko < 3 {\n" + half + "    }\n" + rest),
            start + "several operations of different blocks write it");
  EXPECT_EQ(why(half + "    gemm As, As -> acc {transpose_b}\n" + rest),
            start + "q/ko/gemm#0 reads it before all of it is filled");
}

}  // namespace
}  // namespace tilegen::schedule
