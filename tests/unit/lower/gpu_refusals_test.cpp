// What GPU lowering refuses, by name and with a way out.
#include <gtest/gtest.h>

#include "../schedule/complete_plan.h"
#include "check/check_program.h"
#include "ir/text.h"
#include "schedule/plan_program.h"
#include "support/diag_codes.h"

namespace tilegen::lower {
namespace {

ir::Program parsed(const std::string& text) {
  auto program = ir::parse_program(text, "test.tl", Limits{});
  EXPECT_TRUE(program) << program.error().to_text();
  if (!program) return {};
  for (const Diagnostic& d : check::check_program(*program, Limits{})) ADD_FAILURE() << d.to_text();
  return std::move(*program);
}

// Plans the program, lets `change` edit the schedule, and returns the refusal of lowering.
Diagnostic refusal(const std::string& text, const std::function<void(plan::KernelSchedule&)>& change = {}) {
  const ir::Program p = parsed(text);
  const target::Target target = *target::find_target("sm_80");
  auto schedule = schedule::plan_program(p, target, {});
  EXPECT_TRUE(schedule) << schedule.error().to_text();
  if (!schedule) return {};
  if (change) change(schedule->kernels[0]);
  auto lowered = schedule::lowered_as_planned(p, 0, schedule->kernels[0], target);
  EXPECT_FALSE(lowered);
  return lowered ? Diagnostic() : lowered.error().diagnostics.front();
}

TEST(GpuRefusals, RegistersChosenAtRunTime) {
  const Diagnostic d = refusal(
      "tl 1 program t\ntensor X: i32[128] readonly\ntensor Y: i32[128]\nkernel k grid (b: 1) threads 128 {\n"
      "  alloc l: local i32[128]\n  fill l, 0i32\n  serial i in 0 .. 100 {\n    l[i] = 1i32\n  }\n"
      "  parallel i in 128 {\n    Y[i] = X[i] + l[3]\n  }\n}\n",
      [](plan::KernelSchedule& k) {
        k.values[0].memory.reset();
        k.values[0].fragment = layout::Fragment::replicated(std::vector<int64_t>{128}, 128);
        k.ops[0].iteration = k.values[0].fragment;
      });
  EXPECT_EQ(d.code, DiagCode::target_unsupported);
  EXPECT_EQ(d.op, "k/i/store#0");
  EXPECT_NE(d.message.find("128 registers"), std::string::npos) << d.message;
  EXPECT_FALSE(d.hint.empty());
}

TEST(GpuRefusals, AScheduleThatRunsAnOpWhereItsElementsAreNot) {
  const Diagnostic d = refusal(
      "tl 1 program t\ntensor X: f32[32, 64] readonly\ntensor Y: f32[32, 64]\nkernel k grid (b: 1) threads "
      "128 {\n"
      "  alloc x: fragment f32[32, 64]\n  copy X -> x\n  copy x -> Y\n}\n",
      [](plan::KernelSchedule& k) {
        k.ops[1].iteration = layout::Fragment::row_major_vectors(std::vector<int64_t>{32, 64}, 128, 1);
      });
  EXPECT_EQ(d.code, DiagCode::schedule_illegal);
  EXPECT_EQ(d.op, "k/copy#1");
  EXPECT_NE(d.message.find("'x'"), std::string::npos) << d.message;
  EXPECT_FALSE(d.hint.empty());
}

// A schedule may name the copy engine, which walks over no elements, for an op that it does not do.
TEST(GpuRefusals, AnOpWithoutAnIteration) {
  for (plan::Engine engine : {plan::Engine::tensor_copy, plan::Engine::async_copy, plan::Engine::loop})
    for (size_t op : {size_t{0}, size_t{1}, size_t{2}}) {
      const Diagnostic d = refusal(
          "tl 1 program t\ntensor X: f32[32, 64] readonly\ntensor Y: f32[32, 64]\nkernel k grid (b: 1) "
          "threads 128 {\n"
          "  alloc x: shared f32[32, 64]\n  copy X -> x\n  parallel i, j in 32, 64 {\n    x[i, j] = x[i, j] "
          "+ 1.0f32\n  }\n"
          "  copy x -> Y\n}\n",
          [&](plan::KernelSchedule& k) {
            k.ops[op].engine = engine;
            k.ops[op].iteration.reset();
          });
      EXPECT_EQ(d.code, DiagCode::schedule_illegal);
      EXPECT_NE(d.message.find(plan::engine_name(engine)), std::string::npos) << d.message;
      EXPECT_FALSE(d.hint.empty());
    }
}

TEST(GpuRefusals, ThreadDigitsThatOverlap) {
  const Diagnostic d = refusal(
      "tl 1 program t\ntensor X: f32[16] readonly\ntensor Y: f32[16]\nkernel k grid (b: 1) threads 128 {\n"
      "  alloc x: fragment f32[16]\n  copy X -> x\n  copy x -> Y\n}\n",
      [](plan::KernelSchedule& k) {
        // 4 * a + 3 * b for a, b below 4
        auto map =
            layout::Layout::make({16}, {{0, 4, 1, layout::kThread, 3}, {0, 4, 4, layout::kThread, 4}}, 2);
        ASSERT_TRUE(map) << map.error().to_text();
        const auto f = layout::Fragment::make(*map, 128);
        ASSERT_TRUE(f) << f.error().to_text();
        for (plan::OpPlan& op : k.ops) op.iteration = *f;
        for (plan::ValuePlan& v : k.values) v.fragment = *f;
      });
  EXPECT_EQ(d.code, DiagCode::target_unsupported);
  EXPECT_NE(d.message.find("overlap"), std::string::npos) << d.message;
}

}  // namespace
}  // namespace tilegen::lower
