// When two warpgroups have a loop's iterations by turns.
#include <functional>

#include "plan_support.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {
namespace {

struct Loop {
  int64_t rows = 64, threads = 256, columns = 128;
  std::string stages = "stages 2";
  std::string work;                // behind the scores' maxima
  std::string sums = "o";          // of the second product
  std::string behind;              // the loop
  std::string order = "in order";  // of what the sums are scaled with
  std::string store = " copy s -> w\n";
};

std::string each(const std::string& extents, const char* what) {
  return " parallel i, j in " + extents + " { " + what + " }\n";
}

// Decoding attention: s = Q K^T, w = exp2(s - top), o = o * before + w K.
std::string text_of(const Loop& l) {
  const std::string m = std::to_string(l.rows), d = std::to_string(l.columns);
  const std::string scale = each(m + ", " + d, "o[i, j] = o[i, j] * before[i]"),
                    weights = each(m + ", 64", "s[i, j] = exp2(s[i, j] - top[i])") + l.work,
                    factor = " parallel i in " + m + " { before[i] = exp2(before[i] - top[i]) }\n";
  return "tl 1 program p\ndim n divisible 8\ntensor Q: f16[n, " + d + "] readonly\ntensor K: f16[n, " + d +
         "] readonly\ntensor O: f16[n, " + d + "]\ntensor T: f32[n]\nkernel a grid (by: ceildiv(n, " + m +
         ")) threads " + std::to_string(l.threads) + " {\n alloc Qs: shared f16[" + m + ", " + d +
         "]\n alloc Ks: shared f16[64, " + d + "]\n alloc w: shared f16[" + m +
         ", 64]\n alloc s: fragment f32[" + m + ", 64]\n alloc o: fragment f32[" + m + ", " + d +
         "]\n alloc top: fragment f32[" + m + "]\n alloc before: fragment f32[" + m +
         "]\n alloc total: fragment f32[" + m + "]\n copy Q[by * " + m + " :+ " + m + ", 0 :+ " + d +
         "] -> Qs\n fill o, 0.0f32\n fill total, 0.0f32\n fill top, -1e+30f32\n pipelined kb in 0 .. "
         "ceildiv(n, 64) " +
         l.stages + " {\n copy K[kb * 64 :+ 64, 0 :+ " + d +
         "] -> Ks\n gemm Qs, Ks -> s {transpose_b, clear}\n"
         " copy top -> before\n reduce s -> top {kind=max, axis=1, accumulate}\n" +
         (l.order == "in order" ? weights + factor + l.store + scale : factor + scale + weights + l.store) +
         " gemm w, Ks -> o\n }\n" + l.behind + " copy o -> O[by * " + m + " :+ " + m + ", 0 :+ " + d +
         "]\n}\n";
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

// `decide`: what is given of the kernel.
Expected<plan::Schedule> plan_given(const Loop& l, const std::function<void(plan::KernelSchedule&)>& decide) {
  auto p = program_from(text_of(l));
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = "a";
  decide(given.kernels[0]);
  return plan_for(*p, "sm_90a", &given);
}
plan::LoopPlan turns(bool on) {
  plan::LoopPlan loop;
  loop.loop = "a/kb";
  loop.alternating = on;
  return loop;
}
Expected<plan::Schedule> plan_with(const Loop& l, bool on) {
  return plan_given(l, [&](plan::KernelSchedule& k) { k.loops = {turns(on)}; });
}
Expected<plan::Schedule> plan_in_parts(const Loop& l, int64_t parts, bool on = true) {
  return plan_given(l, [&](plan::KernelSchedule& k) {
    k.loops = {turns(on)};
    k.pipelines = planned(l).pipelines;
    for (plan::PipelinePlan& c : k.pipelines)
      if (c.name == "a/kb") c.parts = parts;
  });
}
Expected<plan::Schedule> plan_left(const Loop& l, bool in_registers) {
  return plan_given(l, [&](plan::KernelSchedule& k) {
    plan::OpPlan op;
    op.op = "a/kb/gemm#1";
    op.left_in_registers = in_registers;
    k.ops = {op};
  });
}
void expect_refused(const Expected<plan::Schedule>& s, const char* op, const char* words) {
  ASSERT_FALSE(s);
  const Diagnostic& d = s.error().diagnostics[0];
  EXPECT_EQ(d.code, DiagCode::schedule_illegal);
  EXPECT_EQ(d.op, op);
  EXPECT_NE(d.message.find(words), std::string::npos) << d.message;
}
std::string notes_of(const plan::KernelSchedule& k) {
  std::string all;
  for (const plan::Note& n : k.notes) all += n.text + "\n";
  return all;
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

// Each is done with its columns of a tile at another time.
TEST(Alternation, TileInAPartForEachWarpgroup) {
  const plan::KernelSchedule k = planned({});
  ASSERT_EQ(k.pipelines.size(), 2u);
  const plan::PipelinePlan* keys = plan::find_pipeline(k, "a/kb");
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->parts, 2);
  EXPECT_EQ(notes_of(k).find("in parts"), std::string::npos) << notes_of(k);
}
TEST(Alternation, PartsAsGiven) {
  auto one = plan_in_parts({}, 1);
  ASSERT_TRUE(one) << one.error().to_text();
  EXPECT_EQ(plan::find_pipeline(one->kernels[0], "a/kb")->parts, 1);
  EXPECT_EQ(one->kernels[0].loops[0].alternating, true);
  expect_refused(plan_in_parts({}, 4), "a/kb", "in 4 parts, but two warpgroups share its columns");
}

// Who has made the weights has them in registers.
TEST(Alternation, OwnWeightsFromRegisters) {
  EXPECT_EQ(plan::find_op(planned({}), "a/kb/gemm#1")->left_in_registers, true);
  auto off = plan_left({}, false);
  ASSERT_TRUE(off) << off.error().to_text();
  EXPECT_EQ(plan::find_op(off->kernels[0], "a/kb/gemm#1")->left_in_registers, false);
}
TEST(Alternation, WeightsThatNoCopyStores) {
  const Loop l{.store = each("64, 64", "w[i, j] = cast(f16, s[i, j])")};
  const plan::KernelSchedule k = planned(l);
  EXPECT_EQ(k.loops[0].alternating, true);
  EXPECT_NE(plan::find_op(k, "a/kb/gemm#1")->left_in_registers, true);
  EXPECT_NE(notes_of(k).find("is read from shared memory by both warpgroups"), std::string::npos)
      << notes_of(k);
  expect_refused(plan_left(l, true), "a/kb/gemm#1", "left_in_registers");
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
