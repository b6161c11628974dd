// When two warpgroups have a loop's iterations by turns.
#include "plan_support.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {
namespace {

struct Loop {
  int64_t rows = 64, threads = 256;
  std::string stages = "stages 2";
  std::string work;                // behind the scores' maxima
  std::string sums = "o";          // of the second product
  std::string behind;              // the loop
  std::string order = "in order";  // of what the sums are scaled with
};

std::string each(const std::string& extents, const char* what) {
  return " parallel i, j in " + extents + " { " + what + " }\n";
}

// Decoding attention: s = Q K^T, w = exp2(s - top), o = o * before + w K.
std::string text_of(const Loop& l) {
  const std::string m = std::to_string(l.rows);
  const std::string scale = each(m + ", 128", "o[i, j] = o[i, j] * before[i]"),
                    weights = each(m + ", 64", "s[i, j] = exp2(s[i, j] - top[i])") + l.work,
                    factor = " parallel i in " + m + " { before[i] = exp2(before[i] - top[i]) }\n";
  return "tl 1 program p\ndim n divisible 8\ntensor Q: f16[n, 128] readonly\ntensor K: f16[n, 128] readonly\n"
         "tensor O: f16[n, 128]\ntensor T: f32[n]\nkernel a grid (by: ceildiv(n, " +
         m + ")) threads " + std::to_string(l.threads) + " {\n alloc Qs: shared f16[" + m +
         ", 128]\n alloc Ks: shared f16[64, 128]\n alloc w: shared f16[" + m +
         ", 64]\n alloc s: fragment f32[" + m + ", 64]\n alloc o: fragment f32[" + m +
         ", 128]\n alloc top: fragment f32[" + m + "]\n alloc before: fragment f32[" + m +
         "]\n copy Q[by * " + m + " :+ " + m +
         ", 0 :+ 128] -> Qs\n fill o, 0.0f32\n fill top, -1e+30f32\n pipelined kb in 0 .. ceildiv(n, 64) " +
         l.stages +
         " {\n copy K[kb * 64 :+ 64, 0 :+ 128] -> Ks\n gemm Qs, Ks -> s {transpose_b, clear}\n"
         " copy top -> before\n reduce s -> top {kind=max, axis=1, accumulate}\n" +
         (l.order == "in order" ? weights + factor + " copy s -> w\n" + scale
                                : factor + scale + weights + " copy s -> w\n") +
         " gemm w, Ks -> o\n }\n" + l.behind + " copy o -> O[by * " + m + " :+ " + m + ", 0 :+ 128]\n}\n";
}

plan::KernelSchedule planned(const Loop& l, const char* target = "sm_90a") {
  auto p = program_from(text_of(l));
  if (!p) return {};
  auto s = plan_for(*p, target);
  EXPECT_TRUE(s) << s.error().to_text();
  return s ? s->kernels[0] : plan::KernelSchedule{};
}
std::optional<bool> alternating(const Loop& l, const char* target = "sm_90a") {
  const plan::KernelSchedule k = planned(l, target);
  return k.loops.empty() ? std::nullopt : k.loops[0].alternating;
}

Expected<plan::Schedule> plan_with(const Loop& l, bool on) {
  auto p = program_from(text_of(l));
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = "a";
  plan::LoopPlan loop;
  loop.loop = "a/kb";
  loop.alternating = on;
  given.kernels[0].loops = {loop};
  return plan_for(*p, "sm_90a", &given);
}

TEST(Alternation, ScoresOfOneWarpgroupsRows) {
  const plan::KernelSchedule k = planned({});
  ASSERT_EQ(k.loops.size(), 1u);
  EXPECT_EQ(k.loops[0].alternating, true);
  EXPECT_EQ(k.loops[0].ping_pong, false);
  const plan::OpPlan *scores = plan::find_op(k, "a/kb/gemm#0"), *sums = plan::find_op(k, "a/kb/gemm#1");
  ASSERT_TRUE(scores && sums);
  EXPECT_EQ(scores->warps_m, 4);
  EXPECT_EQ(scores->warps_n, 1);
  EXPECT_EQ(sums->warps_n, 2);
  EXPECT_EQ(plan::find_value(k, "a:w")->slots, 2);
  EXPECT_EQ(plan::find_value(k, "a:s")->fragment->replicas(), 2);
}

// What is written in another order plans the same.
TEST(Alternation, WhateverTheOrder) {
  Loop other;
  other.order = "sums first";
  EXPECT_EQ(alternating(other), true);
}

TEST(Alternation, NotWhereWarpgroupsHaveRowsOfTheirOwn) { EXPECT_NE(alternating({.rows = 128}), true); }
TEST(Alternation, NotOfOneWarpgroup) { EXPECT_NE(alternating({.threads = 128}), true); }
TEST(Alternation, NotInOneStage) { EXPECT_NE(alternating({.stages = "stages 1"}), true); }
TEST(Alternation, NotWithoutWarpgroups) { EXPECT_NE(alternating({}, "sm_80"), true); }
TEST(Alternation, NotWhereTheWorkWritesTensors) {
  EXPECT_NE(alternating({.work = " parallel i in 64 { T[by * 64 + i] = top[i] }\n"}), true);
}

TEST(Alternation, AsGiven) {
  auto off = plan_with({}, false);
  ASSERT_TRUE(off) << off.error().to_text();
  EXPECT_NE(off->kernels[0].loops[0].alternating, true);
  auto refused = plan_with({.rows = 128}, true);
  ASSERT_FALSE(refused);
  const Diagnostic& d = refused.error().diagnostics[0];
  EXPECT_EQ(d.code, DiagCode::schedule_illegal);
  EXPECT_EQ(d.op, "a/kb");
  EXPECT_NE(d.message.find("have rows for both warpgroups"), std::string::npos) << d.message;
}

}  // namespace
}  // namespace tilegen::schedule
