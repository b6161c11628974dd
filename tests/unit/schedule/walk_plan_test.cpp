// Who does what in a block, which points of the grid it walks over and with which others: roles, persistence,
// clusters.
#include "hopper_plans.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {
namespace {

using plan::Engine;

// A product whose length depends on the block, or not.
std::string walked_text(bool differ) {
  std::string text = gemm_text(128, 256, 64, 4, 256);
  if (differ) text.replace(text.find("0 .. ceildiv(k, 64)"), 19, "0 .. by + 1");
  return text;
}

TEST(Persistence, BlocksWithoutAProductWalkToo) {
  std::string text = gemm_text(128, 256, 64, 4, 256, "f16", "", " }\n");
  text.replace(text.find("pipelined"), 9, "if by < 3 {\n pipelined");
  auto p = program_from(text);
  ASSERT_TRUE(p);
  const plan::KernelSchedule k = planned(*p).kernels[0];
  EXPECT_EQ(plan::find_op(k, "gemm/if#0/ko/gemm#0")->engine, Engine::warpgroup_mma);
  EXPECT_TRUE(k.persistence->dynamic());
}

// Rows of 1040 bytes begin inside lines of the cache, which makes bringing the tiles the longer part; rows of
// 1024 do not.
TEST(Clusters, ArePlannedWhereRowsBeginInsideLines) {
  std::string text = read_file(source_path("tests/files/plan/hopper/gemm_small_misaligned.tl"));
  const plan::Schedule planned_for_520 = planned(*program_from(text));
  const plan::ClusterPlan cluster = *planned_for_520.kernels[0].cluster;
  EXPECT_EQ(cluster.blocks, 4);
  EXPECT_EQ(cluster.along, "bx");
  EXPECT_EQ(cluster.reason,
            "bringing the tiles of a block takes 5200 cycles, with a tile read once for 4 blocks 4900");
  for (size_t at = text.find("520"); at != std::string::npos; at = text.find("520"))
    text.replace(at, 3, "512");
  EXPECT_EQ(planned(*program_from(text)).kernels[0].cluster->blocks, 1);
}

TEST(Launches, AreDependentWhereTheTargetKnowsIt) {
  auto p = program_from(gemm_text(64, 64, 32, 2, 128));
  ASSERT_TRUE(p);
  EXPECT_TRUE(planned(*p).kernels[0].launch->dependent.value_or(false));
  EXPECT_TRUE(plan_for(*p, "sm_90")->kernels[0].launch->dependent.value_or(false));
  EXPECT_FALSE(plan_for(*p, "sm_80")->kernels[0].launch->dependent.has_value());
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = p->kernels[0].name;
  given.kernels[0].launch = plan::LaunchPlan{.dependent = false};
  EXPECT_FALSE(
      planned(*p, TensorCopies::loads_and_stores, &given).kernels[0].launch->dependent.value_or(true));
  given.kernels[0].launch->dependent = true;
  auto refusal = plan_for(*p, "sm_89", &given);
  ASSERT_FALSE(refusal);
  EXPECT_NE(refusal.error().to_text().find("the given launch is dependent, which target sm_89 does not know"),
            std::string::npos);
}

TEST(Persistence, BlocksWalkAloneOnAMultiprocessorAndClaimWhereWorkDiffers) {
  auto p = program_from(gemm_text(64, 64, 32, 2, 128));
  ASSERT_TRUE(p);
  plan::KernelSchedule k = planned(*p).kernels[0];
  EXPECT_TRUE(k.has_producer());
  EXPECT_FALSE(k.persistence->persistent);
  k = planned(*program_from(walked_text(false))).kernels[0];
  EXPECT_TRUE(k.persistence->persistent);
  EXPECT_FALSE(k.persistence->dynamic());
  k = planned(*program_from(walked_text(true))).kernels[0];
  EXPECT_TRUE(k.persistence->dynamic());
  EXPECT_EQ(k.persistence->reason,
            "one block fills a multiprocessor, and tiles have different amounts of work: each block takes "
            "its next one when it is done, whose loads run beside the epilogue of this one");
  EXPECT_EQ(k.raster->order, "lpt");
  const auto place = std::find_if(k.memory.begin(), k.memory.end(),
                                  [](const auto& m) { return m.storage == plan::Storage::tile_scheduler; });
  ASSERT_NE(place, k.memory.end());
  EXPECT_EQ(place->bytes, 2 * (8 + 8 + 4));
}

TEST(Persistence, TheGivenOrderIsTaken) {
  for (bool differ : {false, true}) {
    auto p = program_from(walked_text(differ));
    ASSERT_TRUE(p);
    for (const auto& [persistent, order] :
         {std::pair(false, "static"), std::pair(true, "static"), std::pair(true, "dynamic")}) {
      plan::Schedule given;
      given.kernels.resize(1);
      given.kernels[0].kernel = "gemm";
      given.kernels[0].persistence = plan::PersistencePlan{persistent, order, false, "x"};
      const auto s = plan_for(*p, "sm_90a", &given);
      ASSERT_TRUE(s) << s.error().to_text();
      EXPECT_EQ(*s->kernels[0].persistence, *given.kernels[0].persistence);
      const bool dynamic_tiles =
          std::any_of(s->kernels[0].memory.begin(), s->kernels[0].memory.end(),
                      [](const auto& m) { return m.storage == plan::Storage::tile_scheduler; });
      EXPECT_EQ(dynamic_tiles, persistent && std::string(order) == "dynamic");
    }
  }
}

TEST(Persistence, ImpossibleOrdersAreRefused) {
  auto p = program_from(walked_text(true));
  ASSERT_TRUE(p);
  const auto refusal = [&](plan::PersistencePlan persistence, int64_t cluster = 1, bool producer = true) {
    plan::Schedule given;
    given.kernels.resize(1);
    given.kernels[0].kernel = "gemm";
    given.kernels[0].persistence = std::move(persistence);
    if (cluster > 1) given.kernels[0].cluster = plan::ClusterPlan{cluster, "by", ""};
    if (!producer) given.kernels[0].roles.emplace();
    const auto s = plan_for(*p, "sm_90a", &given);
    if (s) return std::string("none");
    EXPECT_EQ(s.error().diagnostics[0].code, DiagCode::schedule_illegal);
    EXPECT_NE(s.error().diagnostics[0].hint.find("leave `persistence` out"), std::string::npos);
    return s.error().diagnostics[0].message;
  };
  const std::string impossible = "the given persistence is not possible: ";
  EXPECT_EQ(refusal({true, "guided", false, ""}),
            impossible + "order 'guided' is neither 'static' nor 'dynamic'");
  EXPECT_EQ(refusal({false, "dynamic", false, ""}), impossible + "blocks of one tile have no order of tiles");
  EXPECT_EQ(
      refusal({true, "dynamic", false, ""}, 2),
      impossible +
          "blocks of a cluster compute their tiles together, and a dynamic tile scheduler gives one to each");
  EXPECT_EQ(refusal({true, "dynamic", false, ""}, 1, false),
            impossible + "it needs a producer, which the kernel has not");
  EXPECT_EQ(refusal({true, "static", false, ""}, 1, false),
            impossible + "it needs a producer, which the kernel has not");
  EXPECT_EQ(refusal({true, "static", true, ""}),
            impossible + "only a dynamic tile scheduler skips tiles ('skip_empty_tiles')");
  EXPECT_EQ(refusal({true, "dynamic", true, ""})
                .rfind(impossible + "no tile can be skipped ('skip_empty_tiles')", 0),
            0u);
}

// A product whose tiles' lengths differ, and which stores the first rows only.
TEST(EmptyTiles, ArePassedOverByBlocksThatClaimTheirTiles) {
  std::string text = walked_text(true);
  EXPECT_FALSE(planned(*program_from(text)).kernels[0].persistence->skip_empty_tiles.value());
  text.insert(text.find(" copy acc -> C["), " if by * 128 < k {\n");
  text.insert(text.size() - 2, " }\n");
  const plan::PersistencePlan walk = *planned(*program_from(text)).kernels[0].persistence;
  EXPECT_TRUE(walk.dynamic());
  EXPECT_TRUE(walk.skip_empty_tiles.value());
}

TEST(Roles, RegistersAreMovedWhereOneWarpBesideLeavesTooFew) {
  const std::string old = " alloc old: fragment f32[128, 256]\n",
                    add =
                        " copy C[by * 128 :+ 128, bx * 256 :+ 256] -> old\n"
                        " parallel i, j in 128, 256 {\n acc[i, j] = acc[i, j] + old[i, j]\n }\n";
  for (const auto& [text, expected] :
       {std::pair(gemm_text(128, 256, 64, 3, 256), std::array<int64_t, 3>{1, 0, 0}),
        std::pair(gemm_text(128, 256, 64, 3, 256, "f32", old, add), std::array<int64_t, 3>{4, 24, 240}),
        std::pair(gemm_text(192, 256, 64, 2, 384), std::array<int64_t, 3>{4, 32, 160})}) {
    auto p = program_from(text);
    ASSERT_TRUE(p);
    const std::vector<plan::RolePlan> roles = *planned(*p).kernels[0].roles;
    ASSERT_EQ(roles.size(), 2u);
    const auto& [warps, registers, computing] = expected;
    EXPECT_EQ(roles[1].warps, warps) << roles[1].reason;
    EXPECT_EQ(roles[1].registers, registers) << roles[1].reason;
    EXPECT_EQ(roles[0].registers, computing) << roles[1].reason;
  }
}

}  // namespace
}  // namespace tilegen::schedule
