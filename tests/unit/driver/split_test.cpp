// Which kernels have blocks that share a loop, by the cost model and as given, and what is said of others.
#include <gtest/gtest.h>

#include <algorithm>

#include "driver/compile.h"
#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::driver {
namespace {

struct Shape {
  int m, n, k, tile_m = 64, tile_n = 64;
};

std::string product_text(const Shape& s, const std::string& before = "fill c, 0.0f32") {
  const auto n = [](int v) { return std::to_string(v); };
  const std::string tm = n(s.tile_m), tn = n(s.tile_n);
  return "tl 1 program p\ntensor A: f16[" + n(s.m) + ", " + n(s.k) + "] readonly\ntensor B: f16[" + n(s.n) +
         ", " + n(s.k) + "] readonly\ntensor C: f32[" + n(s.m) + ", " + n(s.n) +
         "]\nkernel gemm grid (by: ceildiv(" + n(s.m) + ", " + tm + "), bx: ceildiv(" + n(s.n) + ", " + tn +
         ")) threads 128 {\n  alloc a: shared f16[" + tm + ", 64]\n  alloc b: shared f16[" + tn +
         ", 64]\n  alloc c: fragment f32[" + tm + ", " + tn + "]\n  " + before +
         "\n  pipelined ko in 0 .. ceildiv(" + n(s.k) + ", 64) {\n    copy A[by * " + tm + " :+ " + tm +
         ", ko * 64 :+ 64] -> a\n    copy B[bx * " + tn + " :+ " + tn +
         ", ko * 64 :+ 64] -> b\n    gemm a, b -> c {transpose_b}\n  }\n  copy c -> C[by * " + tm + " :+ " +
         tm + ", bx * " + tn + " :+ " + tn + "]\n}\n";
}

Expected<std::shared_ptr<const Artifact>> compiled(const std::string& text, const std::string& target,
                                                   std::optional<plan::SplitPlan> split = std::nullopt,
                                                   bool plan_only = true) {
  auto p = ir::parse_program(text, "test.tl", Limits{});
  EXPECT_TRUE(p) << p.error().to_text();
  CompileOptions options;
  options.plan_only = plan_only;
  if (split) {
    options.schedule.emplace();
    options.schedule->kernels.push_back({.kernel = "gemm"});
    options.schedule->kernels[0].split = std::move(split);
  }
  return compile(std::make_shared<const ir::Program>(std::move(*p)), *target::find_target(target), options);
}

int64_t parts_of(const Shape& s, const std::string& target = "sm_90a") {
  const auto a = compiled(product_text(s), target);
  EXPECT_TRUE(a) << a.error().to_text();
  const auto& split = (*a)->schedule.kernels[0].split;
  if (split) {
    EXPECT_EQ(split->loop, "gemm/ko");
    EXPECT_NE(split->reason.find("with one block a point"), std::string::npos) << split->reason;
    if (split->through != "workspace") {
      EXPECT_EQ((*a)->schedule.kernels[0].cluster->blocks, split->parts);
    }
  }
  return split ? split->parts : 1;
}

// The sums of the parts take no room from the loop's tiles: these are read by then.
TEST(Split, SumsLieWhereTilesWere) {
  const auto a =
      compiled(product_text({1024, 1024, 16384, 128, 128}), "sm_90a", plan::SplitPlan{"gemm/ko", 2, ""});
  ASSERT_TRUE(a) << a.error().to_text();
  const plan::KernelSchedule& k = (*a)->schedule.kernels[0];
  const plan::MemoryPlan* sums = plan::find_memory(k, plan::Storage::parts, "gemm/ko");
  ASSERT_NE(sums, nullptr);
  EXPECT_EQ(sums->bytes, 128 * 128 * 4);
  int64_t end = 0;
  for (const plan::MemoryPlan& m : k.memory)
    if (m.storage == plan::Storage::value) end = std::max(end, m.offset + m.bytes);
  EXPECT_LE(sums->offset + sums->bytes, end);
  EXPECT_GT(end + sums->bytes, target::find_target("sm_90a")->shared_bytes);
}

TEST(Split, WhereFewBlocksHaveLongLoops) {
  EXPECT_GE(parts_of({64, 64, 65536}), 16);
  EXPECT_GE(parts_of({128, 128, 32768}), 16);
  EXPECT_GE(parts_of({64, 2560, 16384, 64, 128}), 2);
}

TEST(Split, NotWhereTheGridFillsTheMachine) {
  EXPECT_EQ(parts_of({4096, 4096, 4096}), 1);
  EXPECT_EQ(parts_of({64, 64 * 132, 8192}), 1);
}

TEST(Split, NotWhereTheLoopIsShort) { EXPECT_EQ(parts_of({64, 64, 128}), 1); }

// Without clusters sums meet in a workspace.
TEST(Split, OnEveryTargetWithBlocksOfThreads) {
  for (const char* target : {"sm_80", "sm_90", "gfx942"}) {
    SCOPED_TRACE(target);
    EXPECT_GE(parts_of({64, 64, 65536}, target), 16);
    EXPECT_EQ(parts_of({4096, 4096, 4096}, target), 1);
  }
  EXPECT_EQ(parts_of({64, 64, 65536}, "host"), 1);
}

TEST(Split, TheScheduleSaysWhyFewBlocksDoNotShareTheirLoop) {
  const auto a = compiled(product_text({64, 64, 65536}, "fill c, 1.0f32"), "sm_90a");
  ASSERT_TRUE(a) << a.error().to_text();
  std::string notes;
  for (const plan::Note& n : (*a)->schedule.kernels[0].notes) notes += n.path + ": " + n.text + "\n";
  EXPECT_NE(
      notes.find(
          "gemm: a grid of 1 does not fill 132 multiprocessors, and blocks cannot share the iterations of "
          "gemm/ko: 'c' is not 0 when it begins\n"),
      std::string::npos)
      << notes;
}

TEST(Split, ADecidedScheduleIsTakenAsItIs) {
  const auto text = product_text({64, 64, 65536});
  const auto first = compiled(text, "sm_90a");
  ASSERT_TRUE(first) << first.error().to_text();
  auto p = ir::parse_program(text, "test.tl", Limits{});
  CompileOptions options;
  options.plan_only = true;
  options.schedule = *plan::schedule_from_json(plan::schedule_to_json((*first)->schedule), Limits{});
  const auto again =
      compile(std::make_shared<const ir::Program>(std::move(*p)), *target::find_target("sm_90a"), options);
  ASSERT_TRUE(again) << again.error().to_text();
  EXPECT_EQ((*again)->schedule, (*first)->schedule);
}

// Every version has the slots of one launch: those of the text, and then the workspaces of each in its turn.
TEST(Split, WorkspacesOfKernelsAreParametersOfAll) {
  const std::string one = product_text({64, 64, 65536});
  std::string other = one.substr(one.find("kernel gemm"));
  other.replace(other.find("gemm"), 4, "more");
  const auto a = compiled(one + other, "sim:sm_80", std::nullopt, false);
  ASSERT_TRUE(a) << a.error().to_text();
  const ir::Program& launched = (*a)->launch_program();
  const size_t common = (*a)->program->params.size();
  size_t own = 0;
  for (const thread::ThreadProgram& k : (*a)->kernels) {
    SCOPED_TRACE(k.name);
    ASSERT_EQ(k.params.size(), launched.params.size());
    for (size_t i = common; i < k.params.size(); ++i) {
      EXPECT_TRUE(launched.is_workspace(launched.params[i]));
      EXPECT_EQ(k.memory(k.params[i].memory).param, static_cast<int>(i));
      EXPECT_EQ(k.params[i].name, launched.buffer(launched.params[i].buffer).name);
    }
    EXPECT_EQ(thread::verify_thread_program(k), std::vector<std::string>());
    own += 2;  // sums and counters
  }
  EXPECT_EQ(launched.params.size(), common + own);
}

TEST(Split, ThroughAWorkspaceADecidedScheduleIsTakenAsItIs) {
  const auto text = product_text({64, 64, 65536});
  const auto first = compiled(text, "sm_80");
  ASSERT_TRUE(first) << first.error().to_text();
  ASSERT_EQ((*first)->schedule.kernels[0].split->through, "workspace");
  auto p = ir::parse_program(text, "test.tl", Limits{});
  CompileOptions options;
  options.plan_only = true;
  options.schedule = *plan::schedule_from_json(plan::schedule_to_json((*first)->schedule), Limits{});
  const auto again =
      compile(std::make_shared<const ir::Program>(std::move(*p)), *target::find_target("sm_80"), options);
  ASSERT_TRUE(again) << again.error().to_text();
  EXPECT_EQ((*again)->schedule, (*first)->schedule);
}

// Weights that a launch would load beside the one in front would delay that one's meeting; who asks for it
// has it.
TEST(Split, BlocksThatMeetInAWorkspaceHaveNoPreamble) {
  std::string text = product_text({64, 64, 65536, 64, 16});
  text.replace(text.find("readonly\ntensor C"), 8, "constant");
  const auto preamble = [&](bool* noted) {
    const auto a = compiled(text, "sm_90a");
    EXPECT_TRUE(a) << a.error().to_text();
    const plan::KernelSchedule& k = (*a)->schedule.kernels[0];
    EXPECT_EQ(k.split->through, "workspace");
    *noted = std::any_of(k.notes.begin(), k.notes.end(), [](const plan::Note& n) {
      return n.path == "gemm/ko/copy#1" && n.text.find("sums of blocks meet in memory") != std::string::npos;
    });
    return plan::find_op(k, "gemm/ko/copy#1")->preamble.value_or(false);
  };
  bool noted = false;
  EXPECT_FALSE(preamble(&noted));
  EXPECT_TRUE(noted);
  text.replace(text.find("-> b\n"), 4, "-> b {preamble = true}");
  EXPECT_TRUE(preamble(&noted));
  EXPECT_FALSE(noted);
}

TEST(Split, OfOnePartIsNone) {
  const auto a = compiled(product_text({64, 64, 65536}), "sm_90a", plan::SplitPlan{"gemm/ko", 1, ""});
  ASSERT_TRUE(a) << a.error().to_text();
  EXPECT_EQ((*a)->schedule.kernels[0].cluster->blocks, 1);
}

struct Refused {
  const char* target;
  plan::SplitPlan split;
  std::string before;
  const char* says;
  DiagCode code = DiagCode::schedule_illegal;
};

TEST(Split, RefusesByNameWhatCannotBe) {
  const std::string zero = "fill c, 0.0f32";
  const Refused all[] = {
      {"sm_90a", {"gemm/k", 2, ""}, zero, "names loop 'gemm/k'", DiagCode::schedule_mismatch},
      {"sm_90a", {"", 2, ""}, zero, "the given `split` has no `loop`"},
      {"sm_90a", {"gemm/ko", 0, ""}, zero, "the given `split` has no `parts`"},
      {"sm_90a", {"gemm/ko", 3, "", "cluster"}, zero, "3 parts are no power of two from 2 to 16"},
      {"sm_90a", {"gemm/ko", 32, "", "cluster"}, zero, "32 parts are no power of two from 2 to 16"},
      {"sm_90a", {"gemm/ko", 65, ""}, zero, "expected 2 to 64 parts, got 65"},
      {"sm_90a", {"gemm/ko", 2, ""}, "fill c, 1.0f32", "'c' is not 0 when it begins"},
      {"host", {"gemm/ko", 2, ""}, zero, "host has no blocks of threads"},
      {"sm_80",
       {"gemm/ko", 2, "", "cluster"},
       zero,
       "sm_80 has no copy engine, and only kernels with a producer form clusters"},
  };
  for (const Refused& r : all) {
    SCOPED_TRACE(r.says);
    const auto a = compiled(product_text({64, 64, 1024}, r.before), r.target, r.split);
    ASSERT_FALSE(a);
    EXPECT_EQ(a.error().diagnostics[0].code, r.code);
    EXPECT_NE(a.error().diagnostics[0].message.find(r.says), std::string::npos) << a.error().to_text();
    EXPECT_FALSE(a.error().diagnostics[0].hint.empty());
  }
}

TEST(Split, ARejectedPlanLeavesTheLoopToOneBlock) {
  auto p = ir::parse_program(product_text({64, 64, 65536}), "test.tl", Limits{});
  CompileOptions options;
  options.check = [](const thread::ThreadProgram& q) {
    return q.cluster > 1 ? std::vector<std::string>{"gemm/ko: a test says no"} : std::vector<std::string>{};
  };
  const auto a =
      compile(std::make_shared<const ir::Program>(std::move(*p)), *target::find_target("sm_90a"), options);
  ASSERT_TRUE(a) << a.error().to_text();
  const plan::KernelSchedule& k = (*a)->schedule.kernels[0];
  EXPECT_FALSE(k.split);
  EXPECT_TRUE(k.has_producer());
  EXPECT_EQ(plan::find_op(k, "gemm/ko/gemm#0")->engine, plan::Engine::warpgroup_mma);
  ASSERT_FALSE(k.notes.empty());
  EXPECT_EQ(k.notes.back().text,
            "blocks do not share a loop: so planned the kernel was rejected, gemm/ko: a test says no");
}

// What is read of the other block, and stored, is half of the tile.
TEST(Split, SharesOfWhatFollows) {
  const auto a = compiled(product_text({1024, 1024, 16384, 128, 128}), "sm_90a",
                          plan::SplitPlan{"gemm/ko", 2, "", "cluster_shares"});
  ASSERT_TRUE(a) << a.error().to_text();
  const plan::KernelSchedule& k = (*a)->schedule.kernels[0];
  EXPECT_EQ(k.split->through, "cluster_shares");
  EXPECT_EQ(k.cluster->blocks, 2);
  const plan::ValuePlan* own = plan::find_value(k, "gemm:c_own");
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->fragment->registers() * 2, plan::find_value(k, "gemm:c")->fragment->registers());
  EXPECT_EQ(plan::find_op(k, "gemm/copy#0")->engine, plan::Engine::tensor_copy);
}

// Columns of a row are held by the threads of two warpgroups.
TEST(Split, SharesAreRegistersOfEveryThread) {
  std::string text = product_text({64, 1024, 16384, 64, 256});
  text.replace(text.find("threads 128"), 11, "threads 256");
  text.replace(text.find("copy c -> C"), 11,
               "parallel i, j in 64, 256 {\n    C[by * 64 + i, bx * 256 + j] = c[i, j]\n  }\n  ;");
  const auto a = compiled(text, "sm_90a", plan::SplitPlan{"gemm/ko", 2, "", "cluster_shares"});
  ASSERT_FALSE(a);
  const Diagnostic& d = a.error().diagnostics[0];
  EXPECT_EQ(d.code, DiagCode::schedule_illegal);
  EXPECT_NE(d.message.find("are not the same registers of every thread"), std::string::npos) << d.message;
  EXPECT_NE(d.hint.find("`through` cluster"), std::string::npos) << d.hint;
}

// Sums of rows are of all columns: the first block has them, and a note says why.
TEST(Split, TheScheduleSaysWhyWhatFollowsIsNotShared) {
  std::string text = product_text({64, 64, 65536});
  text.replace(text.find("tensor C: f32[64, 64]"), 21, "tensor C: f32[64]");
  text.replace(text.find("  fill c"), 8, "  alloc r: fragment f32[64]\n  fill c");
  text.replace(text.find("copy c -> C"), text.size(), "reduce c -> r {axis=1}\n  copy r -> C\n}\n");
  const auto given = compiled(text, "sm_90a", plan::SplitPlan{"gemm/ko", 4, "", "cluster_shares"});
  ASSERT_FALSE(given);
  const std::string why =
      "what follows it cannot be shared: gemm/reduce#0 is no loop over elements, copy or fill";
  EXPECT_NE(given.error().diagnostics[0].message.find(why), std::string::npos) << given.error().to_text();
  const auto a = compiled(text, "sm_90a");
  ASSERT_TRUE(a) << a.error().to_text();
  const plan::KernelSchedule& k = (*a)->schedule.kernels[0];
  ASSERT_TRUE(k.split);
  EXPECT_EQ(k.split->through, "cluster");
  std::string notes;
  for (const plan::Note& n : k.notes) notes += n.path + ": " + n.text + "\n";
  EXPECT_NE(notes.find("gemm/ko: " + why), std::string::npos) << notes;
}

// Threads that form no warpgroup have no producer, and no clusters.
TEST(Split, WithoutAProducerSumsMeetInAWorkspace) {
  std::string text = product_text({64, 64, 65536});
  text.replace(text.find("threads 128"), 11, "threads 96");
  const auto a = compiled(text, "sm_90a");
  ASSERT_TRUE(a) << a.error().to_text();
  const plan::KernelSchedule& k = (*a)->schedule.kernels[0];
  ASSERT_TRUE(k.split);
  EXPECT_EQ(k.split->through, "workspace");
  EXPECT_FALSE(k.has_producer());
}

// Clusters are not planned where one block a point has no copy by the engine: none of them could be.
TEST(Split, ClustersNeedCopiesByTheEngine) {
  int with = 0, without = 0;
  for (int threads : {32, 64, 96, 128, 160, 256})
    for (int tile_m : {16, 64, 128})
      for (int tile_n : {16, 64, 256}) {
        SCOPED_TRACE(std::to_string(threads) + " threads, " + std::to_string(tile_m) + " x " +
                     std::to_string(tile_n));
        std::string text = product_text({tile_m, tile_n, 65536, tile_m, tile_n});
        text.replace(text.find("threads 128"), 11, "threads " + std::to_string(threads));
        const auto whole = compiled(text, "sm_90a", plan::SplitPlan{"gemm/ko", 1, ""});
        if (!whole) continue;  // sums that so few threads cannot hold
        const auto& ops = (*whole)->schedule.kernels[0].ops;
        if (std::any_of(ops.begin(), ops.end(),
                        [](const plan::OpPlan& op) { return op.engine == plan::Engine::tensor_copy; })) {
          ++with;
          continue;
        }
        ++without;
        for (const char* through : {"cluster", "cluster_shares"}) {
          const auto parts = compiled(text, "sm_90a", plan::SplitPlan{"gemm/ko", 2, "", through});
          ASSERT_FALSE(parts) << through;
          const Diagnostic& d = parts.error().diagnostics[0];
          EXPECT_EQ(d.code, DiagCode::schedule_illegal) << d.message;
          // Shares of what follows may be refused before, by the layouts of what is given.
          if (through == std::string("cluster")) {
            EXPECT_NE(d.message.find("no producer loads its tiles"), std::string::npos) << d.message;
          }
        }
      }
  EXPECT_GT(with, 4);
  EXPECT_GT(without, 4);
}

// The fallback version of tensors that the copy engine does not take has no clusters.
TEST(Split, AFallbackVersionDoesWithout) {
  const auto a =
      compiled(product_text({64, 64, 65536}), "sim:sm_90a", plan::SplitPlan{"gemm/ko", 4, ""}, false);
  ASSERT_TRUE(a) << a.error().to_text();
  ASSERT_GT((*a)->decisions.size(), 1u);
  EXPECT_EQ((*a)->decisions.front().split->parts, 4);
  EXPECT_FALSE((*a)->decisions.back().split);
}

int64_t stages_of(const Shape& s, const cost::Sizes& sizes = {}) {
  auto p = ir::parse_program(product_text(s), "test.tl", Limits{});
  CompileOptions options;
  options.plan_only = true;
  options.sizes = sizes;
  const auto a =
      compile(std::make_shared<const ir::Program>(std::move(*p)), *target::find_target("sm_90a"), options);
  EXPECT_TRUE(a) << a.error().to_text();
  return (*a)->schedule.kernels[0].loops[0].num_stages;
}

TEST(SingleWave, HasAsManyStagesAsFit) {
  EXPECT_EQ(stages_of({64, 64 * 100, 8192}), 8);
  EXPECT_EQ(stages_of({64, 256 * 100, 8192, 64, 256}), 5);  // of 40 KiB each
  EXPECT_EQ(stages_of({64, 64 * 133, 8192}), 4);
}

}  // namespace
}  // namespace tilegen::driver
