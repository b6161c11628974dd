// Sums that a loop carries in parts: which, after which loop, and what keeps the others from it.
#include <algorithm>

#include "plan_support.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {
namespace {

// Rows of 64 over the columns of X, a tile in every iteration; `in_loop` works on x, `after` on what is
// left.
std::string rows(const std::string& in_loop, const std::string& front = " fill total, 0.0f32\n",
                 const std::string& behind = " copy total -> Y[b * 16 :+ 16]\n") {
  return "tl 1 program p\ndim n\ndim m\ntensor X: f32[n, m] readonly\ntensor W: f32[m] readonly\ntensor Y: "
         "f32[n]\n"
         "kernel k grid (b: ceildiv(n, 16)) threads 128 {\n alloc x: fragment f32[16, 64]\n alloc part: "
         "fragment f32[16]\n"
         " alloc more: fragment f32[16]\n alloc total: fragment f32[16]\n alloc top: fragment f32[16]\n" +
         front + " serial t in 0 .. ceildiv(m, 64) {\n copy X[b * 16 :+ 16, t * 64 :+ 64] -> x\n" + in_loop +
         " }\n" + behind + "}\n";
}

plan::KernelSchedule planned(const std::string& text, const std::string& target = "sm_80") {
  auto p = program_from(text);
  if (!p) return {};
  auto s = plan_for(*p, target);
  EXPECT_TRUE(s) << s.error().to_text();
  return s ? s->kernels[0] : plan::KernelSchedule{};
}

// Where the sum `op` is joined; "unset" where that is no choice.
std::string joined(const plan::KernelSchedule& k, const std::string& op) {
  const plan::OpPlan* plan = plan::find_op(k, op);
  EXPECT_TRUE(plan) << op;
  return plan && plan->deferred_to ? *plan->deferred_to : "unset";
}
std::string joined_in(const std::string& in_loop, const std::string& op = "k/t/reduce#0") {
  return joined(planned(rows(in_loop)), op);
}

const std::string kAdded =
    " reduce x -> part {axis=1}\n parallel i in 16 { total[i] = total[i] + part[i] }\n";

TEST(PartialSums, WhatIsOnlyAddedUpAndScaledIsJoinedBehindTheLoop) {
  EXPECT_EQ(joined_in(kAdded), "k/t");
  EXPECT_EQ(joined_in(" reduce x -> total {axis=1, accumulate}\n"), "k/t");
  EXPECT_EQ(joined_in(" reduce x -> top {kind=max, axis=1}\n reduce x -> part {axis=1}\n"
                      " parallel i in 16 { total[i] = total[i] * exp(top[i]) - part[i] / 3.0f32 }\n",
                      "k/t/reduce#1"),
            "k/t");
  EXPECT_EQ(joined_in(" reduce x -> part {axis=1}\n copy part -> more\n"
                      " parallel i in 16 { total[i] = total[i] + select(t < 3, more[i], 0.0f32) }\n"),
            "k/t");
}

TEST(PartialSums, SumsThatAreAddedUpTogetherAreJoinedTogether) {
  const plan::KernelSchedule k =
      planned(rows(" reduce x -> part {axis=1}\n parallel i, j in 16, 64 { x[i, j] = x[i, j] * x[i, j] }\n"
                   " reduce x -> more {axis=1}\n parallel i in 16 { total[i] = total[i] + part[i] * 2.0f32 + "
                   "more[i] }\n"));
  EXPECT_EQ(joined(k, "k/t/reduce#0"), "k/t");
  EXPECT_EQ(joined(k, "k/t/reduce#1"), "k/t");
}

TEST(PartialSums, WhatTheLoopUsesOtherwiseIsJoinedAtOnce) {
  EXPECT_EQ(
      joined_in(" reduce x -> part {axis=1}\n parallel i in 16 { total[i] = max(total[i], part[i]) }\n"), "");
  EXPECT_EQ(
      joined_in(
          " reduce x -> part {axis=1}\n parallel i in 16 { total[i] = total[i] + part[i] * part[i] }\n"),
      "");
  EXPECT_EQ(
      joined_in(" reduce x -> part {axis=1}\n parallel i in 16 { total[i] = total[i] + part[i] + 1.0f32 }\n"),
      "");
  EXPECT_EQ(
      joined_in(
          " reduce x -> part {axis=1}\n parallel i in 16 { if part[i] > 0.0f32 { total[i] = 0.0f32 } }\n"),
      "");
  EXPECT_EQ(
      joined_in(
          kAdded +
          " parallel i, j in 16, 64 { x[i, j] = x[i, j] * total[i] }\n reduce x -> top {kind=max, axis=1}\n"),
      "");
  EXPECT_EQ(joined_in(kAdded + " copy total -> Y[b * 16 :+ 16]\n"), "");
  EXPECT_EQ(joined_in(kAdded + " reduce x -> total {kind=max, axis=1, accumulate}\n"), "");
  EXPECT_EQ(joined_in(kAdded + " parallel i in 16 { total[i] = total[i] + W[t] }\n"), "");
  EXPECT_EQ(joined_in(" reduce x -> total {kind=max, axis=1, accumulate}\n"), "unset");
}

TEST(PartialSums, TheOutermostLoopThatOnlyCarriesTheSumIsTheOne) {
  const std::string nest = " serial u in 0 .. 3 {\n" + kAdded + " }\n";
  EXPECT_EQ(joined_in(nest, "k/t/u/reduce#0"), "k/t");
  EXPECT_EQ(joined_in(nest + " copy total -> Y[b * 16 :+ 16]\n", "k/t/u/reduce#0"), "k/t/u");
}

TEST(PartialSums, ThereMustBeThreadsToJoin) {
  EXPECT_EQ(joined(planned(rows(kAdded), "x86-64-v3"), "k/t/reduce#0"), "unset");
  // Nothing is left to reduce between threads.
  const plan::KernelSchedule k = planned(
      "tl 1 program p\ntensor X: f32[128, 4, 8] readonly\ntensor Y: f32[128, 4]\nkernel k grid (b: 1) "
      "threads 128 {\n"
      " alloc x: fragment f32[128, 8]\n alloc total: fragment f32[128]\n fill total, 0.0f32\n serial t in 0 "
      ".. 4 {\n"
      " parallel i in 128 { x[i, 0] = X[i, t, 0] }\n reduce x[0 :+ 128, 0 :+ 1] -> total {axis=1, "
      "accumulate}\n }\n"
      " copy total -> Y[0 :+ 128, 0 :+ 1]\n}\n");
  EXPECT_EQ(joined(k, "k/t/reduce#0"), "");
}

TEST(PartialSums, LayoutsThatDoNotAllowPartsAreNoted) {
  // A fragment that is read at run-time places is a shared tile.
  const plan::KernelSchedule k =
      planned(rows(kAdded, " fill total, 0.0f32\n", " parallel i in 16 { Y[b * 16 + i] = total[15 - i] }\n"));
  EXPECT_EQ(joined(k, "k/t/reduce#0"), "");
  const auto note =
      std::find_if(k.notes.begin(), k.notes.end(), [](const auto& n) { return n.path == "k/t/reduce#0"; });
  ASSERT_NE(note, k.notes.end());
  EXPECT_NE(note->text.find("joined in every iteration: k:total is held in memory"), std::string::npos)
      << note->text;
}

TEST(PartialSums, ThePartsThatMeetInMemoryHaveScratchBehindTheLoop) {
  // Shuffles move four bytes; a row of 1024 elements is spread over more than a warp.
  std::string wide = rows(kAdded), of_f64 = wide;
  for (size_t at; (at = of_f64.find("f32")) != std::string::npos;) of_f64.replace(at, 3, "f64");
  const auto narrow = [](std::string* text, const std::string& what, const std::string& by) {
    for (size_t at = 0; (at = text->find(what, at)) != std::string::npos; at += by.size())
      text->replace(at, what.size(), by);
  };
  narrow(&wide, "16", "2");
  narrow(&wide, "64", "1024");
  for (const std::string& text : {wide, of_f64}) {
    const plan::KernelSchedule k = planned(text);
    EXPECT_EQ(joined(k, "k/t/reduce#0"), "k/t");
    ASSERT_EQ(k.memory.size(), 1u) << text;
    EXPECT_EQ(k.memory[0].storage, plan::Storage::scratch);
    EXPECT_EQ(k.memory[0].owner, "k/t/reduce#0");
  }
  EXPECT_TRUE(planned(rows(kAdded)).memory.empty());
}

Expected<plan::Schedule> given(const std::string& text, const std::string& op, const std::string& loop,
                               const std::string& target = "sm_80") {
  auto p = program_from(text);
  plan::Schedule s;
  s.kernels.resize(1);
  s.kernels[0].kernel = "k";
  // As planned but for the one decision.
  plan::OpPlan o = *plan::find_op(planned(text, target), op);
  o.deferred_to = loop;
  s.kernels[0].ops = {o};
  return plan_for(*p, target, &s);
}

TEST(PartialSums, AScheduleSwitchesThemOffAndOn) {
  auto off = given(rows(kAdded), "k/t/reduce#0", "");
  ASSERT_TRUE(off) << off.error().to_text();
  EXPECT_EQ(joined(off->kernels[0], "k/t/reduce#0"), "");
  const std::string nest = rows(" serial u in 0 .. 3 {\n" + kAdded + " }\n");
  auto inner = given(nest, "k/t/u/reduce#0", "k/t/u");
  ASSERT_TRUE(inner) << inner.error().to_text();
  EXPECT_EQ(joined(inner->kernels[0], "k/t/u/reduce#0"), "k/t/u");
}

TEST(PartialSums, AGivenPlaceThatIsNotLegalIsRefused) {
  auto refusal = [&](const std::string& text, const std::string& op, const std::string& loop,
                     const std::string& target = "sm_80") {
    auto s = given(text, op, loop, target);
    if (s) return std::string("not refused");
    EXPECT_EQ(s.error().diagnostics[0].code, DiagCode::schedule_illegal);
    EXPECT_EQ(s.error().diagnostics[0].op, op);
    EXPECT_FALSE(s.error().diagnostics[0].hint.empty());
    return s.error().diagnostics[0].message;
  };
  const std::string used = kAdded + " copy total -> Y[b * 16 :+ 16]\n";
  EXPECT_NE(refusal(rows(used), "k/t/reduce#0", "k/t").find("k/t/copy#1 uses k:total in the loop"),
            std::string::npos)
      << refusal(rows(used), "k/t/reduce#0", "k/t");
  EXPECT_NE(refusal(rows(kAdded), "k/t/reduce#0", "k/other").find("no loop around it has this path"),
            std::string::npos);
  EXPECT_NE(refusal(rows(" reduce x -> total {kind=max, axis=1, accumulate}\n"), "k/t/reduce#0", "k/t")
                .find("it is no sum"),
            std::string::npos);
  EXPECT_NE(refusal(rows(kAdded), "k/t/reduce#0", "k/t", "x86-64-v3").find("not spread over threads"),
            std::string::npos);
}

TEST(PartialSums, AFullScheduleReplaysThem) {
  for (const std::string target : {"sm_80", "sm_90a"}) {
    auto p = program_from(rows(kAdded));
    auto s = plan_for(*p, target);
    ASSERT_TRUE(s) << s.error().to_text();
    auto read = plan::schedule_from_json(plan::schedule_to_json(*s), Limits{});
    ASSERT_TRUE(read) << read.error().to_text();
    auto again = plan_for(*p, target, &*read);
    ASSERT_TRUE(again) << again.error().to_text();
    EXPECT_EQ(joined(again->kernels[0], "k/t/reduce#0"), "k/t");
    EXPECT_EQ(again->kernels[0].ops, s->kernels[0].ops);
  }
}

}  // namespace
}  // namespace tilegen::schedule
