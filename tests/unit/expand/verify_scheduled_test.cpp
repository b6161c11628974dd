// The checks of scheduled programs hold for all that is expanded, and tell when a hand-over or a wait is left
// out, doubled or moved.
#include <filesystem>

#include "expand/versions.h"
#include "scheduled_mutants.h"

namespace tilegen::expand {
namespace {

std::vector<std::string> program_files() {
  std::vector<std::string> list;
  for (const char* folder : {"tests/files", "tests/unit/schedule/flagship"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(schedule::source_path(folder)))
      if (entry.path().extension() == ".tl") list.push_back(entry.path().string());
  std::sort(list.begin(), list.end());
  return list;
}

TEST(VerifyScheduled, HoldsForEveryProgram) {
  size_t pipelined = 0;
  for (const std::string& path : program_files()) {
    auto p = ir::parse_program(schedule::read_file(path), "test.tl", Limits{});
    if (!p || !check::check_program(*p, Limits{}).empty()) continue;
    for (const char* target : {"sm_80", "sm_90a", "x86-64-v3"}) {
      const ir::Program form = schedule::planned_form(*p, target);
      const auto plan = schedule::plan_for(form, target);
      if (!plan) continue;
      for (size_t k = 0; k < p->kernels.size(); ++k) {
        const auto e =
            expand_kernel(form, static_cast<int>(k), plan->kernels[k], schedule::target_named(target));
        ASSERT_TRUE(e) << path << ": " << e.error().to_text();
        pipelined += !e->pipelines.empty();
        for (const std::string& broken : verify_scheduled(form, *e))
          ADD_FAILURE() << path << " " << target << ": " << broken << "\n" << print_scheduled(form, *e);
      }
    }
  }
  EXPECT_GT(pipelined, 70u);
}

// Of the mutants that `change` makes.
Counts judged(Expanded& e, const std::function<bool(Block&, size_t)>& change) {
  return mutate(e, change, [&] { return !verify_scheduled(*e.program, e.kernel).empty(); });
}

class Mutants : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Mutants, AreTold) {
  auto e = expanded_from(schedule::source_path(GetParam().first), GetParam().second);
  ASSERT_TRUE(e);
  ASSERT_TRUE(verify_scheduled(*e->program, e->kernel).empty());
  const Counts left_out = judged(*e, leave_out);
  EXPECT_GE(left_out.mutants, 3);
  EXPECT_EQ(left_out.told, left_out.mutants) << "left out";
  const Counts doubled = judged(*e, double_it);
  EXPECT_EQ(doubled.told, doubled.mutants) << "doubled";
  const Counts later = judged(*e, wait_later);
  EXPECT_EQ(later.told, later.mutants) << "a wait after what it is for";
  const Counts pending = judged(*e, one_more_pending);
  EXPECT_EQ(pending.told, pending.mutants) << "one more pending";
  const Counts earlier = judged(*e, release_earlier);
  EXPECT_EQ(earlier.told, earlier.mutants) << "released before the wait";
  for (const Counts& other : {judged(*e, another_iteration(*e, 1)), judged(*e, another_iteration(*e, -1))})
    EXPECT_EQ(other.told, other.mutants) << "another iteration";
}

INSTANTIATE_TEST_SUITE_P(
    All, Mutants,
    ::testing::Values(std::pair("tests/unit/schedule/flagship/gemm_flagship.tl", "sm_90a"),
                      std::pair("tests/unit/schedule/flagship/attention_full.tl", "sm_90a"),
                      std::pair("tests/unit/schedule/flagship/attention_causal.tl", "sm_90a"),
                      std::pair("tests/unit/schedule/flagship/attention_split.tl", "sm_90a"),
                      std::pair("tests/files/plan/hopper/products_without_loop.tl", "sm_90a"),
                      std::pair("tests/files/plan/hopper/tile_of_an_outer_loop.tl", "sm_90a"),
                      std::pair("tests/files/plan/hopper/product_in_a_branch.tl", "sm_90a"),
                      std::pair("tests/differential/regressions/alternating_warpgroups.tl", "sm_90a"),
                      std::pair("tests/differential/regressions/constant_weights.tl", "sm_90a"),
                      std::pair("tests/files/plan/gemm_bias_relu.tl", "sm_80"),
                      std::pair("tests/files/plan/flash_attention.tl", "sm_80")));

// A thread that gives a slot back could be a round ahead of others, which would wait for ever.
TEST(VerifyScheduled, SlotsGoBackWhenAllThreadsHaveSeenThemFull) {
  auto e = expanded_from(schedule::source_path("tests/differential/regressions/alternating_warpgroups.tl"),
                         "sm_90a");
  ASSERT_TRUE(e);
  ASSERT_TRUE(verify_scheduled(*e->program, e->kernel).empty());
  size_t meetings = 0;
  for (Role& r : e->kernel.roles)
    for_each_block(r.body, [&](Block& b) {
      meetings += std::erase_if(b, [](const Stmt& s) {
        const auto* done = std::get_if<ProductsDone>(&s.node);
        return done && done->waits;
      });
    });
  ASSERT_EQ(meetings, 1u);
  const std::vector<std::string> broken = verify_scheduled(*e->program, e->kernel);
  ASSERT_FALSE(broken.empty());
  EXPECT_NE(broken[0].find("they do not meet in between"), std::string::npos) << broken[0];
}

// Without one of the waits its role touches a tensor that the kernel in front may write.
TEST(VerifyScheduled, OnlyConstantTensorsAreReadBesideTheKernelInFront) {
  const auto path = schedule::source_path("tests/differential/regressions/constant_weights.tl");
  const auto is_wait = [](const Stmt& s) { return std::holds_alternative<GridDependencyWait>(s.node); };
  for (size_t role : {size_t{0}, size_t{1}}) {
    auto e = expanded_from(path, "sm_90a");
    ASSERT_TRUE(e);
    ASSERT_EQ(e->kernel.roles.size(), 2u);
    ASSERT_TRUE(has_preamble(e->kernel));
    ASSERT_TRUE(verify_scheduled(*e->program, e->kernel).empty());
    ASSERT_EQ(std::erase_if(e->kernel.roles[role].body, is_wait), 1u);
    const std::vector<std::string> broken = verify_scheduled(*e->program, e->kernel);
    ASSERT_FALSE(broken.empty());
    EXPECT_NE(broken[0].find("before the kernel in front has ended"), std::string::npos) << broken[0];
  }
}

}  // namespace
}  // namespace tilegen::expand
