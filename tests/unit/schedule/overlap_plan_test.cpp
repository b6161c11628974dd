// The order in which a loop with a producer issues its products and what threads do between them.
#include <algorithm>

#include "hopper_plans.h"

namespace tilegen::schedule {
namespace {

using Stages = std::vector<std::pair<std::string, int64_t>>;

// Attention in small: Q once, K and V in every iteration, each for a product of its own.
std::string attention(const std::string& in_loop = "", const char* stages = "2") {
  return "tl 1 program p\ndim n divisible 8\ntensor Q: f16[n, 64] readonly\ntensor K: f16[n, 64] readonly\n"
         "tensor V: f16[n, 64] readonly\ntensor O: f16[n, 64]\n"
         "kernel a grid (by: ceildiv(n, 64)) threads 128 {\n alloc Qs: shared f16[64, 64]\n alloc Ks: shared "
         "f16[64, 64]\n"
         " alloc Vs: shared f16[64, 64]\n alloc s: fragment f32[64, 64]\n alloc w: fragment f16[64, 64]\n"
         " alloc o: fragment f32[64, 64]\n alloc top: fragment f32[64]\n copy Q[by * 64 :+ 64, 0 :+ 64] -> "
         "Qs\n"
         " fill o, 0.0f32\n pipelined kb in 0 .. ceildiv(n, 64) stages " +
         std::string(stages) +
         " {\n copy K[kb * 64 :+ 64, 0 :+ 64] -> Ks\n"
         " gemm Qs, Ks -> s {transpose_b, clear}\n reduce s -> top {kind=max, axis=1}\n" +
         in_loop +
         " parallel i, j in 64, 64 { s[i, j] = exp2(s[i, j] - top[i]) }\n copy s -> w\n"
         " parallel i, j in 64, 64 { o[i, j] = o[i, j] * top[i] }\n"
         " copy V[kb * 64 :+ 64, 0 :+ 64] -> Vs\n gemm w, Vs -> o\n }\n copy o -> O[by * 64 :+ 64, 0 :+ "
         "64]\n}\n";
}

plan::KernelSchedule kernel_of(const ir::Program& p) {
  const plan::Schedule s = planned(p);
  return s.kernels.empty() ? plan::KernelSchedule{} : s.kernels[0];
}

Expected<plan::Schedule> plan_in(const ir::Program& p, const Stages& stages) {
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = "a";
  given.kernels[0].loops = {{"a/kb", 2, stages, ""}};
  return plan_for(p, "sm_90a", &given);
}

std::string refusal(const ir::Program& p, const Stages& stages) {
  auto s = plan_in(p, stages);
  if (s) return "not refused";
  EXPECT_EQ(s.error().diagnostics[0].code, DiagCode::schedule_illegal);
  return s.error().diagnostics[0].message;
}

const Stages kLagging = {{"a/kb/copy#0", 0}, {"a/kb/copy#2", 0},   {"a/kb/gemm#0", 1}, {"a/kb/i.j#1", 2},
                         {"a/kb/gemm#1", 2}, {"a/kb/reduce#0", 1}, {"a/kb/i.j", 1},    {"a/kb/copy#1", 1}};

TEST(Overlap, AProductThatWaitsForAnotherLagsBehindIt) {
  auto p = program_from(attention());
  ASSERT_TRUE(p);
  const plan::KernelSchedule k = kernel_of(*p);
  EXPECT_EQ(k.loops[0].stages, kLagging);
  ASSERT_EQ(k.pipelines.size(), 3u);
  EXPECT_EQ(k.pipelines[0], (plan::PipelinePlan{"a:Qs", "", {"a:Qs"}, 1}));
  EXPECT_EQ(k.pipelines[1], (plan::PipelinePlan{"a/kb:Ks", "a/kb", {"a:Ks"}, 2}));
  EXPECT_EQ(k.pipelines[2], (plan::PipelinePlan{"a/kb:Vs", "a/kb", {"a:Vs"}, 2}));
}

// The same of other tiles: in f16, with heads of 128.
std::string attention_of(int rows, int keys, int threads) {
  std::string text = attention();
  const auto all = [&](const std::string& from, const std::string& to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  };
  const std::string r = std::to_string(rows), k = std::to_string(keys);
  all("threads 128", "threads " + std::to_string(threads));
  all("[n, 64]", "[n, D]"), all("0 :+ 64", "0 :+ D");
  all("ceildiv(n, 64)) threads", "ceildiv(n, " + r + ")) threads"),
      all("ceildiv(n, 64)", "ceildiv(n, " + k + ")");
  all("by * 64 :+ 64", "by * " + r + " :+ " + r), all("kb * 64 :+ 64", "kb * " + k + " :+ " + k);
  all("Qs: shared f16[64, 64]", "Qs: shared f16[" + r + ", D]");
  for (const std::string tile : {"Ks", "Vs"})
    all(tile + ": shared f16[64, 64]", tile + ": shared f16[" + k + ", D]");
  all("s: fragment f32[64, 64]", "s: fragment f32[" + r + ", " + k + "]");
  all("w: fragment f16[64, 64]", "w: fragment f16[" + r + ", " + k + "]");
  all("o: fragment f32[64, 64]", "o: fragment f32[" + r + ", D]"), all("f32[64]", "f32[" + r + "]");
  all("in 64, 64 { s[", "in " + r + ", " + k + " { s["), all("in 64, 64 { o[", "in " + r + ", D { o[");
  all("D", "128");
  return text;
}

// Addresses and counters need registers, too: more of those that three warpgroups have.
TEST(Overlap, AnOrderLeavesRegistersBesideItsValues) {
  const auto lags = [](int rows, int keys, int threads) {
    auto p = program_from(attention_of(rows, keys, threads));
    EXPECT_TRUE(p);
    const plan::KernelSchedule k = kernel_of(*p);
    const auto& stages = k.loops.at(0).stages;
    const bool lag = std::find(stages.begin(), stages.end(),
                               std::pair<std::string, int64_t>("a/kb/gemm#1", 2)) != stages.end();
    const bool noted = std::any_of(k.notes.begin(), k.notes.end(), [](const plan::Note& n) {
      return n.text.find("would take more registers than a thread has") != std::string::npos;
    });
    EXPECT_EQ(lag, !noted) << rows << 'x' << keys;
    return lag;
  };
  EXPECT_TRUE(lags(192, 96, 384));
  EXPECT_FALSE(lags(192, 112, 384));
  EXPECT_TRUE(lags(128, 176, 256));
}

// K is filled again beside the product with V, and V beside the one with K: in the order of the program both
// lie idle for longer than if one lagged.
TEST(Overlap, TilesOfOneSlotComeBesideTheOtherProduct) {
  auto p = program_from(attention("", "1"));
  ASSERT_TRUE(p);
  const plan::KernelSchedule k = kernel_of(*p);
  EXPECT_TRUE(k.has_producer());
  EXPECT_EQ(k.loops[0].num_stages, 1);
  for (const auto& [op, stage] : k.loops[0].stages) EXPECT_EQ(stage, 0) << op;
  EXPECT_EQ(plan::find_op(k, "a/kb/gemm#0")->engine, plan::Engine::warpgroup_mma);
  ASSERT_EQ(k.pipelines.size(), 3u);
  EXPECT_EQ(k.pipelines[1], (plan::PipelinePlan{"a/kb:Ks", "a/kb", {"a:Ks"}, 1}));
  EXPECT_EQ(k.pipelines[2], (plan::PipelinePlan{"a/kb:Vs", "a/kb", {"a:Vs"}, 1}));
}

// One product reads both of its tiles at once: nothing is left to run beside.
TEST(Overlap, OneSlotAndOneProductNeedNoProducer) {
  auto p = program_from(gemm_text(128, 128, 64, 1, 256));
  ASSERT_TRUE(p);
  const plan::KernelSchedule k = kernel_of(*p);
  EXPECT_FALSE(k.has_producer());
  const auto note = std::find_if(k.notes.begin(), k.notes.end(), [](const plan::Note& n) {
    return n.text.find("a producer would have nothing to overlap") != std::string::npos;
  });
  EXPECT_NE(note, k.notes.end());
}

// Both products read the loop's only tile; that of the other operand is filled before the loop.
TEST(Overlap, OneSlotOfATileOfAllProductsNeedsNoProducer) {
  std::string text = read_file(source_path("tests/files/plan/hopper/staged_in_idle_tile.tl"));
  text.replace(text.find("stages 2"), 8, "stages 1");
  auto p = program_from(text);
  ASSERT_TRUE(p);
  const plan::KernelSchedule k = kernel_of(*p);
  EXPECT_FALSE(k.has_producer());
  EXPECT_EQ(plan::find_op(k, "weighted/kb/gemm#1")->engine, plan::Engine::mma);
}

// Two slots of weights would keep the only one of the keys beside the next iteration.
TEST(Overlap, OperandsOfThreadsHaveOneSlotInALoopOfOneStage) {
  std::string text = read_file(source_path("tests/files/plan/hopper/staged_in_idle_tile.tl"));
  text.replace(text.find("stages 2"), 8, "stages 1");
  for (size_t at = 0; (at = text.find("320", at)) != std::string::npos;) text.replace(at, 3, "128");
  text.replace(text.find("  alloc Ks: shared f16[128, 128]"), 0, "  alloc Vs: shared f16[128, 128]\n");
  text.replace(text.find("    gemm weights, Ks"), 20,
               "    copy K[kb * 128 :+ 128, 0 :+ 128] -> Vs\n    gemm weights, Vs");
  auto p = program_from(text);
  ASSERT_TRUE(p);
  const plan::KernelSchedule k = kernel_of(*p);
  EXPECT_TRUE(k.has_producer());
  EXPECT_EQ(k.loops[0].num_stages, 1);
  EXPECT_EQ(std::max<int64_t>(1, plan::find_value(k, "weighted:weights")->slots), 1);
}

// A schedule may say that a product lags all the same.
TEST(Overlap, OfOneSlotAProductMayLagWhereAsked) {
  auto p = program_from(attention("", "1"));
  ASSERT_TRUE(p);
  Stages lagging = kLagging;
  for (auto& [op, stage] : lagging) stage = std::max<int64_t>(0, stage - 1);
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = "a";
  given.kernels[0].loops = {{"a/kb", 1, lagging, ""}};
  auto s = plan_for(*p, "sm_90a", &given);
  ASSERT_TRUE(s) << s.error().to_text();
  EXPECT_EQ(s->kernels[0].loops[0].stages, lagging);
}

TEST(Overlap, AGivenOrderIsTakenWhereEveryOpSeesWhatItDoesInTheText) {
  auto p = program_from(attention());
  ASSERT_TRUE(p);
  const Stages in_text = {{"a/kb/copy#0", 0}, {"a/kb/gemm#0", 1}, {"a/kb/reduce#0", 1}, {"a/kb/i.j", 1},
                          {"a/kb/copy#1", 1}, {"a/kb/i.j#1", 1},  {"a/kb/copy#2", 0},   {"a/kb/gemm#1", 1}};
  auto taken = plan_in(*p, in_text);
  ASSERT_TRUE(taken) << taken.error().to_text();
  EXPECT_EQ(taken->kernels[0].loops[0].stages, in_text);

  Stages early = in_text;
  std::swap(early[1], early[3]);  // exp2 of scores that are not there yet
  EXPECT_NE(refusal(*p, early).find("a/kb/reduce#0 would not see what a/kb/gemm#0 leaves"),
            std::string::npos);
  Stages late = kLagging;
  std::swap(late[4], late[7]);  // the weights are overwritten before the product that lags has read them
  EXPECT_NE(refusal(*p, late), "not refused");
  Stages short_by_one = kLagging;
  short_by_one.pop_back();
  EXPECT_NE(refusal(*p, short_by_one).find("`stages` leaves out a/kb/copy#1"), std::string::npos);
  Stages far = kLagging;
  far[4].second = 3;
  EXPECT_NE(refusal(*p, far).find("would not see what"), std::string::npos) << refusal(*p, far);
  Stages all_late = in_text;
  for (auto& [op, stage] : all_late) stage *= 2;
  EXPECT_NE(refusal(*p, all_late).find("none works on the newest iteration"), std::string::npos);
}

// Masks stand in branches where only some blocks need them.
TEST(Overlap, OpsOfABranchStayTogether) {
  auto p = program_from(
      attention(" if kb < 3 { fill s, 0.0f32\n parallel i, j in 64, 64 { s[i, j] = s[i, j] + top[i] } }\n"));
  ASSERT_TRUE(p);
  const plan::KernelSchedule k = kernel_of(*p);
  Stages stages = kLagging;
  stages[3].first = "a/kb/i.j#1";
  stages.insert(stages.begin() + 6, {{"a/kb/if#0/fill#0", 1}, {"a/kb/if#0/i.j", 1}});
  EXPECT_EQ(k.loops[0].stages, stages);
  EXPECT_TRUE(plan_in(*p, stages));
  std::swap(stages[7], stages[8]);
  EXPECT_NE(refusal(*p, stages).find("a/kb/if#0/i.j is issued apart from a/kb/if#0/fill#0"),
            std::string::npos);
  std::swap(stages[7], stages[8]);
  stages[7].second = 2;
  EXPECT_NE(refusal(*p, stages).find("a/kb/if#0/i.j is issued apart from a/kb/if#0/fill#0"),
            std::string::npos);
}

}  // namespace
}  // namespace tilegen::schedule
