// What a fallback version keeps of what the caller gave, what it says of the rest, and who makes it.
#include "driver/fallback_version.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::driver {
namespace {

const char* const kGemm = R"(tl 1 program p
dim m
dim n
dim k
tensor A: f16[m, k] readonly
tensor B: f16[k, n] readonly
tensor C: f16[m, n]
kernel gemm grid (by: ceildiv(m, 128), bx: ceildiv(n, 128)) threads 256 {
  alloc As: shared f16[128, 64]
  alloc Bs: shared f16[64, 128]
  alloc acc: fragment f32[128, 128]
  fill acc, 0.0f32
  pipelined ko in 0 .. ceildiv(k, 64) stages 4 {
    copy A[by * 128 :+ 128, ko * 64 :+ 64] -> As
    copy B[ko * 64 :+ 64, bx * 128 :+ 128] -> Bs
    gemm As, Bs -> acc
  }
  copy acc -> C[by * 128 :+ 128, bx * 128 :+ 128]
}
)";

using Version = std::shared_ptr<const Artifact>;

std::shared_ptr<const ir::Program> program(const char* text = kGemm) {
  auto p = ir::parse_program(text, "test.tl", Limits{});
  EXPECT_TRUE(p) << p.error().to_text();
  return std::make_shared<const ir::Program>(std::move(*p));
}

CompileOptions given(const char* kernel) {
  CompileOptions options;
  auto schedule = plan::schedule_from_json(std::string(R"({"kernels": [)") + kernel + "]}", Limits{});
  EXPECT_TRUE(schedule) << schedule.error().to_text();
  options.schedule = std::move(*schedule);
  return options;
}

// All of them, the first in front.
std::vector<Version> versions(const CompileOptions& options, const char* target = "sm_90a",
                              const char* text = kGemm) {
  std::vector<Version> all;
  auto made = compile(program(text), *target::find_target(target), options);
  for (;;) {
    EXPECT_TRUE(made) << made.error().to_text();
    if (!made) return all;
    all.push_back(*made);
    if (!all.back()->fallback) return all;
    made = all.back()->fallback->get();
  }
}

// The notes of each version about what was given, by number.
std::string said(const std::vector<Version>& all) {
  std::string text;
  for (size_t v = 0; v < all.size(); ++v)
    for (const plan::KernelSchedule& k : all[v]->schedule.kernels)
      for (const plan::Note& n : k.notes)
        if (n.text.find("this version") != n.text.npos)
          text += std::to_string(v) + " " + n.path + ": " + n.text + "\n";
  return text;
}

TEST(FallbackVersion, WhatCanHoldHoldsAndNothingIsSaid) {
  const auto all = versions(given(R"({"kernel": "gemm", "threads": 256, "raster": {"order": "column_major"},
      "launch": {"dependent": false}, "loops": [{"loop": "gemm/ko", "num_stages": 2}]})"));
  ASSERT_EQ(all.size(), 5u);
  for (const Version& v : all) {
    const plan::KernelSchedule& k = v->schedule.kernels[0];
    EXPECT_EQ(k.threads, 256);
    EXPECT_EQ(k.raster->order, "column_major");
    EXPECT_FALSE(k.launch && k.launch->dependent.value_or(false));
    EXPECT_EQ(k.loops[0].num_stages, 2);
  }
  EXPECT_EQ(said(all), "");
}

TEST(FallbackVersion, WhatCannotHoldIsNamed) {
  const auto all =
      versions(given(R"({"kernel": "gemm", "roles": [{"name": "consumer"}, {"name": "producer", "warps": 4}],
      "persistence": {"persistent": true},
      "ops": [{"op": "gemm/ko/copy#0", "engine": "tensor_copy"}, {"op": "gemm/ko/gemm#0", "engine": "warpgroup_mma"},
              {"op": "gemm/copy#0", "engine": "tensor_copy"}]})"));
  ASSERT_EQ(all.size(), 5u);
  const std::string does = " here\n", begin = "` does not hold in this version, which ";
  const std::string none = begin + "does without tensor copies: it is ";
  const auto of = [&](const std::string& version, const std::string& way) {
    return version + " gemm: the given `roles" + way + "none" + does + version +
           " gemm: the given `persistence.persistent" + way + "false" + does + version +
           " gemm/ko/copy#0: the given `engine" + way + "'async_copy'" + does + version +
           " gemm/ko/gemm#0: the given `engine" + way + "'mma'" + does + version +
           " gemm/copy#0: the given `engine" + way + "'vector_copy'" + does;
  };
  const std::string text = said(all);
  EXPECT_NE(text.find("1 gemm/copy#0: the given `engine" + begin +
                      "does without tensor copies to tensors: it is 'vector_copy'" + does),
            text.npos)
      << text;
  EXPECT_NE(text.find(of("3", none)), text.npos) << text;
  EXPECT_NE(text.find(of("4", none)), text.npos) << text;
}

// A whole schedule of the first version, given back.
TEST(FallbackVersion, AWholeScheduleIsNoReasonToRefuse) {
  const auto planned = versions({});
  CompileOptions options;
  options.schedule = planned[0]->schedule;
  const auto all = versions(options);
  ASSERT_EQ(all.size(), planned.size());
  EXPECT_EQ(all[0]->code, planned[0]->code);
  const std::string text = said(all);
  EXPECT_NE(text.find("3 gemm:Bs: the given `memory` does not hold"), text.npos) << text;
  EXPECT_NE(text.find("4 gemm/ko/copy#0: "), text.npos) << text;
}

// Elements of two bytes at odd addresses are no words that could be copied asynchronously.
TEST(FallbackVersion, CopiesOfNoWholeWordsAreOfThreads) {
  for (const char* target : {"sm_80", "sm_90a"}) {
    const auto all = versions({}, target, R"(tl 1 program p
tensor X: f16[256] readonly
tensor Y: f16[128]
kernel k grid(b: 1) threads 128 {
  alloc s: shared f16[256]
  threads t in 128 {
    copy_async X[t * 2 :+ 2] -> s[t * 2 :+ 2]
    commit_group
    wait_group 0
    Y[t] = s[255 - t]
  }
}
)");
    ASSERT_EQ(all.size(), 2u) << target;
    EXPECT_NE(all[0]->code.find("cp.async.ca"), std::string::npos);
    EXPECT_EQ(all[1]->code.find("cp.async"), std::string::npos);
    EXPECT_NE(said(all).find("1 k: no asynchronous copies in this version"), std::string::npos) << said(all);
  }
}

// A field of tensor copies, given without the engine.
TEST(FallbackVersion, WhatPlanningRefusesThereIsLeftOut) {
  const auto all =
      versions(given(R"({"kernel": "gemm", "ops": [{"op": "gemm/copy#0", "epilogue_columns": 64}],
                                      "loops": [{"loop": "gemm/ko", "num_stages": 3}]})"));
  ASSERT_EQ(all.size(), 5u);
  for (const Version& v : all) EXPECT_EQ(v->schedule.kernels[0].loops[0].num_stages, 3);
  const std::string text = said(all);
  for (const char* version : {"1", "2", "3", "4"})
    EXPECT_NE(text.find(std::string(version) + " gemm/copy#0: the given `epilogue_columns` does not hold"),
              text.npos)
        << text;
}

TEST(FallbackVersion, NarrowAccessesAreNamed) {
  const auto all =
      versions(given(R"({"kernel": "gemm", "ops": [{"op": "gemm/copy#0", "vector": 2}]})"), "sm_80");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(said(all),
            "1 gemm/copy#0: the given `vector` does not hold in this version, which relies on nothing that "
            "the program does not promise: it is 1 here\n");
}

TEST(FallbackVersion, GivenDecisionsThatMakeRejectedCodeAreLeftOutThere) {
  CompileOptions options = given(R"({"kernel": "gemm", "loops": [{"loop": "gemm/ko", "num_stages": 2}]})");
  options.check = [](const thread::ThreadProgram& code) {
    const bool wrong = code.tensor_maps.empty() && code.arena_bytes < 80 << 10;
    return wrong ? std::vector<std::string>{"a test says no"} : std::vector<std::string>{};
  };
  const auto all = compile(program(), *target::find_target("sim:sm_90a"), options);
  ASSERT_TRUE(all) << all.error().to_text();
  EXPECT_EQ((*all)->decisions.front().loops[0].num_stages, 2);
  const plan::KernelSchedule& last = (*all)->decisions.back();
  EXPECT_EQ(last.loops[0].num_stages, 4);
  const auto says = [](const plan::Note& n) {
    return n.text ==
           "nothing that is given for the kernel holds in this version: with it the version was rejected, a "
           "test "
           "says no";
  };
  EXPECT_TRUE(std::any_of(last.notes.begin(), last.notes.end(), says))
      << plan::schedule_to_text({"", "", {last}});
}

TEST(FallbackVersion, ConversionsStaySwitchedOff) {
  const char* const text = R"(tl 1 program p
dim m
tensor X: f32[m, 64] readonly
tensor Y: f32[m]
tensor Z: f32[64]
kernel k grid (b: ceildiv(m, 64)) threads 128 {
  alloc x: fragment f32[64, 64]
  alloc rows: fragment f32[64]
  copy X[b * 64 :+ 64, 0 :+ 64] -> x
  reduce x -> rows {axis=1}
  copy rows -> Y[b * 64 :+ 64]
}
)";
  CompileOptions options;
  options.conversions = false;
  for (const char* target : {"sm_80", "sm_90a"})
    for (const Version& v : versions(options, target, text))
      EXPECT_TRUE(v->schedule.kernels[0].conversions.empty()) << target;
  for (const Version& v : versions(options)) EXPECT_TRUE(v->schedule.kernels[0].conversions.empty());
}

TEST(FallbackVersion, OneThreadCompilesAndWhoeverWaitsMayLeave) {
  const auto first = *compile(program(), *target::find_target("sm_90a"), {});
  ASSERT_NE(first->fallback, nullptr);
  EXPECT_EQ(first->fallback->made(), nullptr);
  std::atomic<int> cancelled{0};
  std::vector<Version> made(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { made[i] = *first->fallback->get(); });
    threads.emplace_back([&] {
      const Cancellation now([] { return true; });
      const auto left = first->fallback->get(&now);
      if (!left && left.error().diagnostics[0].code == DiagCode::cancelled_by_caller) ++cancelled;
      if (left) ++cancelled;  // it was there already
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(cancelled, 4);
  for (const Version& v : made) EXPECT_EQ(v, made[0]);
  EXPECT_EQ(first->fallback->made(), made[0]);
}

TEST(FallbackVersion, ItsOwnTimeIsTheCompilationsNotTheKernels) {
  CompileOptions options;
  options.fallback_ms = 1;
  const auto first = *compile(program(), *target::find_target("sm_90a"), options);
  ASSERT_NE(first->fallback, nullptr);
  for (int i = 0; i < 2; ++i) {
    const auto late = first->fallback->get();
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().diagnostics[0].code, DiagCode::cancelled_by_caller);
    EXPECT_NE(late.error().diagnostics[0].message.find("while a fallback version of 'p' was compiled"),
              std::string::npos)
        << late.error().to_text();
  }
  EXPECT_EQ(first->fallback->made(), nullptr);
}

}  // namespace
}  // namespace tilegen::driver
