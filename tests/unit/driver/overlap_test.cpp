// Which kernels have last tiles that overlap the ones before, by the program and as given, and what is said
// of others.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::driver {
namespace {

std::string product_text(const std::string& m, const std::string& dims = "",
                         const std::string& between = "") {
  return "tl 1 program p\n" + dims + "tensor A: f16[" + m +
         ", 256] readonly\ntensor B: f16[512, 256] readonly\ntensor C: f32[" + m + ", 512]\ntensor D: f32[" +
         m + ", 512] readonly\nkernel gemm grid (by: ceildiv(" + m +
         ", 64), bx: 8) threads 128 {\n  alloc a: shared f16[64, 64]\n  alloc b: shared f16[64, 64]\n"
         "  alloc c: fragment f32[64, 64]\n  alloc d: fragment f32[64, 64]\n  fill c, 0.0f32\n"
         "  pipelined ko in 0 .. 4 {\n    copy A[by * 64 :+ 64, ko * 64 :+ 64] -> a\n"
         "    copy B[bx * 64 :+ 64, ko * 64 :+ 64] -> b\n    gemm a, b -> c {transpose_b}\n  }\n" +
         between + "  copy c -> C[by * 64 :+ 64, bx * 64 :+ 64]\n}\n";
}

Expected<std::shared_ptr<const Artifact>> compiled(const std::string& text, const std::string& target,
                                                   std::optional<plan::OverlapPlan> overlap = std::nullopt,
                                                   bool plan_only = true) {
  auto p = ir::parse_program(text, "test.tl", Limits{});
  EXPECT_TRUE(p) << p.error().to_text();
  CompileOptions options;
  options.plan_only = plan_only;
  if (overlap) {
    options.schedule.emplace();
    options.schedule->kernels.push_back({.kernel = "gemm"});
    options.schedule->kernels[0].overlap = std::move(overlap);
  }
  return compile(std::make_shared<const ir::Program>(std::move(*p)), *target::find_target(target), options);
}

std::vector<std::string> along(const std::string& text, const std::string& target = "sm_90a",
                               std::optional<plan::OverlapPlan> given = std::nullopt) {
  const auto a = compiled(text, target, std::move(given));
  EXPECT_TRUE(a) << a.error().to_text();
  const auto& overlap = (*a)->schedule.kernels[0].overlap;
  return overlap ? overlap->along : std::vector<std::string>();
}

using Names = std::vector<std::string>;

TEST(Overlap, WhereTilesDoNotDivide) {
  EXPECT_EQ(along(product_text("m", "dim m\n")), Names{"by"});
  EXPECT_EQ(along(product_text("200")), Names{"by"});
  EXPECT_EQ(along(product_text("m", "dim m divisible 32\n")), Names{"by"});
}

TEST(Overlap, NotWhereTheyDivideOrThereIsOne) {
  EXPECT_EQ(along(product_text("256")), Names());
  EXPECT_EQ(along(product_text("m", "dim m divisible 64\n")), Names());
  EXPECT_EQ(along(product_text("40")), Names());
  EXPECT_EQ(along(product_text("m", "dim m <= 64\n")), Names());
}

TEST(Overlap, NotWithoutACopyEngine) {
  EXPECT_EQ(along(product_text("200"), "sm_80"), Names());
  EXPECT_EQ(along(product_text("200"), "gfx942"), Names());
}

TEST(Overlap, AsGiven) {
  EXPECT_EQ(along(product_text("200"), "sm_90a", plan::OverlapPlan{.last_tiles = false}), Names());
  EXPECT_EQ(along(product_text("200"), "sm_90a", plan::OverlapPlan{.along = {"by"}}), Names{"by"});
  EXPECT_EQ(along(product_text("256"), "sm_90a", plan::OverlapPlan{.along = {"by"}}), Names{"by"});
}

TEST(Overlap, RefusesWhatIsGivenAndNotPossible) {
  const auto unknown = compiled(product_text("200"), "sm_90a", plan::OverlapPlan{.along = {"bz"}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().diagnostics[0].code, DiagCode::schedule_mismatch);
  EXPECT_NE(unknown.error().to_text().find("block indices: by, bx"), std::string::npos)
      << unknown.error().to_text();
  const auto twice = compiled(product_text("200"), "sm_90a", plan::OverlapPlan{.along = {"by", "by"}});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().diagnostics[0].code, DiagCode::schedule_mismatch);
  EXPECT_NE(twice.error().to_text().find("names block index 'by' twice"), std::string::npos)
      << twice.error().to_text();
  const auto rows = compiled(product_text("200", "", "  if by > 1 { fill c, 0.0f32 }\n"), "sm_90a",
                             plan::OverlapPlan{.along = {"by"}});
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().diagnostics[0].code, DiagCode::schedule_illegal);
  EXPECT_NE(rows.error().to_text().find("gemm/if#0: 'by' tells rows of a tile apart"), std::string::npos)
      << rows.error().to_text();
}

TEST(Overlap, TheScheduleSaysWhyTilesDoNot) {
  const std::string in_place =
      "  copy D[by * 64 :+ 64, bx * 64 :+ 64] -> d\n"
      "  parallel i, j in 64, 64 { c[i, j] = c[i, j] + d[i, j] }\n";
  const auto a = compiled(product_text("200", "", in_place), "sm_90a");
  ASSERT_TRUE(a) << a.error().to_text();
  std::string notes;
  for (const plan::Note& n : (*a)->schedule.kernels[0].notes) notes += n.path + ": " + n.text + "\n";
  EXPECT_NE(
      notes.find("gemm: the last tile along 'by' may reach beyond a tensor, where the copy engine fills it "
                 "with zeros slowly, and cannot overlap the one before: gemm/copy#0: a launch may pass one "
                 "tensor as 'D' and 'C'"),
      std::string::npos)
      << notes;
}

// A fallback version has no copy engine, and nothing is filled.
TEST(Overlap, OnlyInVersionsWithTheCopyEngine) {
  const auto a = compiled(product_text("m", "dim m\n"), "sim:sm_90a", std::nullopt, false);
  ASSERT_TRUE(a) << a.error().to_text();
  ASSERT_GE((*a)->decisions.size(), 2u);
  EXPECT_TRUE((*a)->decisions.front().overlap);
  EXPECT_FALSE((*a)->decisions.back().overlap);
  EXPECT_TRUE((*a)->kernels.front().overlapping_blocks);
  EXPECT_FALSE((*a)->kernels.back().overlapping_blocks);
}

// A plan with overlapping tiles replays.
TEST(Overlap, Replays) {
  const auto a = compiled(product_text("m", "dim m\n"), "sm_90a");
  ASSERT_TRUE(a) << a.error().to_text();
  auto p = ir::parse_program(product_text("m", "dim m\n"), "test.tl", Limits{});
  CompileOptions options;
  options.plan_only = true;
  options.schedule = (*a)->schedule;
  const auto b =
      compile(std::make_shared<const ir::Program>(std::move(*p)), *target::find_target("sm_90a"), options);
  ASSERT_TRUE(b) << b.error().to_text();
  EXPECT_EQ(plan::schedule_to_json((*b)->schedule), plan::schedule_to_json((*a)->schedule));
}

}  // namespace
}  // namespace tilegen::driver
