// When the warpgroups of a loop take turns with the matrix units.
#include "schedule/pipeline/ping_pong_plan.h"

#include <algorithm>

#include "plan_support.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {
namespace {

struct Loop {
  int64_t rows = 128, keys = 64, threads = 256;
  std::string between;  // the products, on their sums
  std::string behind;   // the first product, before what scales the sums of the second
  std::string kind = "pipelined", stages = "stages 2";
};

// s = Q K^T, w = s made smaller, o += w V.
std::string text_of(const Loop& l) {
  const std::string m = std::to_string(l.rows), k = std::to_string(l.keys);
  return "tl 1 program p\ndim n divisible 8\ntensor Q: f16[n, 64] readonly\ntensor K: f16[n, 64] readonly\n"
         "tensor V: f16[n, 64] readonly\ntensor O: f16[n, 64]\ntensor T: f32[n]\n"
         "kernel a grid (by: ceildiv(n, " +
         m + ")) threads " + std::to_string(l.threads) + " {\n alloc Qs: shared f16[" + m +
         ", 64]\n alloc Ks: shared f16[" + k + ", 64]\n alloc Vs: shared f16[" + k +
         ", 64]\n alloc s: fragment f32[" + m + ", " + k + "]\n alloc w: fragment f16[" + m + ", " + k +
         "]\n alloc o: fragment f32[" + m + ", 64]\n alloc top: fragment f32[" + m + "]\n copy Q[by * " + m +
         " :+ " + m + ", 0 :+ 64] -> Qs\n fill o, 0.0f32\n fill top, 1.0f32\n " + l.kind +
         " kb in 0 .. ceildiv(n, " + k + ") " + l.stages + " {\n copy K[kb * " + k + " :+ " + k +
         ", 0 :+ 64] -> Ks\n gemm Qs, Ks -> s {transpose_b, clear}\n" + l.between + " copy s -> w\n" +
         l.behind + " copy V[kb * " + k + " :+ " + k +
         ", 0 :+ 64] -> Vs\n gemm w, Vs -> o\n }\n copy o -> O[by * " + m + " :+ " + m + ", 0 :+ 64]\n}\n";
}

std::string each(const char* rows, const char* what) {
  return std::string(" parallel i, j in ") + rows + " { " + what + " }\n";
}
std::string softmax(const std::string& rows) {
  return " reduce s -> top {kind=max, axis=1}\n" +
         each((rows + ", 64").c_str(), "s[i, j] = exp2(s[i, j] - top[i])");
}
std::string scaled(const std::string& rows) {
  return each((rows + ", 64").c_str(), "o[i, j] = o[i, j] * top[i]");
}

plan::LoopPlan loop_of(const Loop& l, const char* target = "sm_90a") {
  auto p = program_from(text_of(l));
  if (!p) return {};
  auto s = plan_for(*p, target);
  EXPECT_TRUE(s) << s.error().to_text();
  return s ? s->kernels[0].loops[0] : plan::LoopPlan{};
}

Expected<plan::Schedule> plan_with(const Loop& l, bool on, const char* target = "sm_90a") {
  auto p = program_from(text_of(l));
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = "a";
  plan::LoopPlan loop;
  loop.loop = "a/kb";
  loop.num_stages = 2;
  loop.ping_pong = on;
  given.kernels[0].loops = {loop};
  return plan_for(*p, target, &given);
}
std::string refusal(const Loop& l, const char* target = "sm_90a") {
  EXPECT_TRUE(plan_with(l, false, target));
  auto s = plan_with(l, true, target);
  if (s) return "not refused";
  EXPECT_EQ(s.error().diagnostics[0].code, DiagCode::schedule_illegal);
  EXPECT_FALSE(s.error().diagnostics[0].hint.empty());
  return s.error().diagnostics[0].message;
}

Loop attention() {
  Loop l;
  l.between = softmax("128");
  l.behind = scaled("128");
  return l;
}

TEST(PingPongPlan, WhereTheThreadsWorkIsARealPartOfAnIteration) {
  const plan::LoopPlan loop = loop_of(attention());
  EXPECT_EQ(loop.ping_pong, true);
  EXPECT_NE(
      loop.reason.find("warpgroups take turns with the matrix units, their work on elements takes about "),
      std::string::npos)
      << loop.reason;
}

TEST(PingPongPlan, NotWhereProductsHideLittleOrAll) {
  Loop little, much;
  EXPECT_EQ(loop_of(little).ping_pong, false);  // the weights are packed, no more
  EXPECT_NE(loop_of(little).reason.find("warpgroups take no turns: their work on elements takes about "),
            std::string::npos);
  for (int i = 0; i < 5; ++i) much.between += each("128, 64", "s[i, j] = exp2(tanh(s[i, j]))");
  EXPECT_EQ(loop_of(much).ping_pong, false);
}

// In program order softmax stands in the turn, and no warpgroup does it while another one does.
TEST(PingPongPlan, NotWhereMostOfTheWorkStandsBetweenTheProducts) {
  const plan::LoopPlan planned = loop_of(attention());
  EXPECT_EQ(planned.reason.find("stands between"), std::string::npos);
  auto p = program_from(text_of(attention()));
  plan::Schedule given;
  given.kernels.resize(1);
  given.kernels[0].kernel = "a";
  plan::LoopPlan in_order;
  in_order.loop = "a/kb";
  in_order.num_stages = 2;
  for (const char* op : {"copy#0", "gemm#0", "reduce#0", "i.j", "copy#1", "i.j#1", "copy#2", "gemm#1"}) {
    const std::string path = std::string("a/kb/") + op;
    ASSERT_TRUE(std::any_of(planned.stages.begin(), planned.stages.end(), [&](const auto& s) {
      return s.first == path;
    })) << path;
    in_order.stages.push_back({path, path.ends_with("copy#0") || path.ends_with("copy#2") ? 0 : 1});
  }
  given.kernels[0].loops = {in_order};
  auto s = plan_for(*p, "sm_90a", &given);
  ASSERT_TRUE(s) << s.error().to_text();
  const plan::LoopPlan& loop = s->kernels[0].loops[0];
  EXPECT_EQ(loop.ping_pong, false);
  EXPECT_NE(loop.reason.find("of it stands between the products of an iteration"), std::string::npos)
      << loop.reason;
}

// With one slot of each tile nothing lags, so that all of the threads' work stands between the products.
TEST(PingPongPlan, NotWhereTilesHaveOneSlot) {
  Loop l = attention();
  l.stages = "stages 1";
  const plan::LoopPlan loop = loop_of(l);
  EXPECT_EQ(loop.num_stages, 1);
  EXPECT_EQ(loop.ping_pong, false);
  EXPECT_NE(loop.reason.find("100 % of it stands between the products"), std::string::npos) << loop.reason;
}

TEST(PingPongPlan, NotWhereOneWarpgroupComputes) {
  Loop l = attention();
  l.rows = 64;
  l.threads = 128;
  l.between = softmax("64");
  l.behind = scaled("64");
  const plan::LoopPlan loop = loop_of(l);
  EXPECT_EQ(loop.ping_pong, false);
  EXPECT_NE(loop.reason.find("one warpgroup computes"), std::string::npos) << loop.reason;
  EXPECT_NE(refusal(l).find("one warpgroup computes"), std::string::npos);
}

TEST(PingPongPlan, OthersAreNotAsked) {
  EXPECT_EQ(loop_of(attention(), "sm_80").ping_pong, std::nullopt);
  EXPECT_NE(refusal(attention(), "sm_80").find("no product of it is one of warpgroups"), std::string::npos);
}

// Between the products of an iteration nobody may wait for a warpgroup that waits for its turn.
TEST(PingPongPlan, NotWhereThreadsMeetBetweenTheProducts) {
  Loop l = attention();
  // T may be written by another block's threads
  l.behind = each("128, 64", "o[i, j] = o[i, j] * T[i]") + scaled("128");
  const std::string why = refusal(l);
  EXPECT_NE(why.find("threads of several warpgroups meet for a/kb/i.j#1, which stands between its products"),
            std::string::npos)
      << why;
  EXPECT_EQ(loop_of(l).ping_pong, false);
}

TEST(PingPongPlan, AGivenWordIsTaken) {
  Loop little;
  auto on = plan_with(little, true), off = plan_with(attention(), false);
  ASSERT_TRUE(on && off);
  EXPECT_EQ(on->kernels[0].loops[0].ping_pong, true);
  EXPECT_EQ(off->kernels[0].loops[0].ping_pong, false);
  // A whole schedule replays, with turns or without, and in forms that have none they are left out.
  for (const auto& [loop, s] : {std::pair(little, *on), std::pair(attention(), *off)}) {
    auto p = program_from(text_of(loop));
    auto again = plan_for(*p, "sm_90a", &s);
    ASSERT_TRUE(again) << again.error().to_text();
    EXPECT_EQ(again->kernels[0].loops[0], s.kernels[0].loops[0]);
    auto plain = plan_program(*p, target_named("sm_90a"), {&s, true, TensorCopies::none});
    ASSERT_TRUE(plain) << plain.error().to_text();
    EXPECT_EQ(plain->kernels[0].loops[0].ping_pong, std::nullopt);
  }
}

TEST(PingPongPlan, WorkIsCountedWhereElementsDiffer) {
  auto p = program_from(
      "tl 1 program p\ntensor X: f32[64, 64] readonly\ntensor Y: f32[64, 64]\nscalar c: f32\n"
      "kernel k grid (b: 1) threads 128 {\n alloc x: fragment f32[64, 64]\n alloc r: fragment f32[64]\n"
      " fill r, 1.0f32\n copy X[0 :+ 64, 0 :+ 64] -> x\n"
      " parallel i, j in 64, 64 { x[i, j] = exp2(x[i, j] * c - r[i] * c) }\n"
      " parallel i, j in 64, 64 { x[i, j] = select(i <= j, x[i, j], 0.0f32) }\n"
      " copy x -> Y[0 :+ 64, 0 :+ 64]\n}\n");
  ASSERT_TRUE(p);
  const analysis::KernelOps ops = analysis::collect_kernel_ops(*p, 0);
  ASSERT_EQ(ops.ops.size(), 5u);
  // a product, a difference, an exponential; a product a row
  EXPECT_EQ(thread_cycles(*p, ops.ops[analysis::OpId(2)], *target::find_target("sm_90a")),
            (10 * 64 * 64 + 64) / 128.0);
  // the choice; its condition is of indices
  EXPECT_EQ(thread_cycles(*p, ops.ops[analysis::OpId(3)], *target::find_target("sm_90a")), 64 * 64 / 128.0);
}

}  // namespace
}  // namespace tilegen::schedule
