// A Schedule is data: a full one replays without inference, a field left out is inferred again, a field
// changed is obeyed or refused with the reason.
#include "expand/expand_kernel.h"
#include "infer/infer_layouts.h"
#include "lower/lower_kernel.h"
#include "plan_support.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {
namespace {

class Replay : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    program_ = program_from(read_file(source_path("tests/files/plan/bias_replication.tl")));
    ASSERT_TRUE(program_);
    auto s = plan_for(*program_, GetParam());
    ASSERT_TRUE(static_cast<bool>(s)) << s.error().to_text();
    planned_ = *s;
  }
  std::string text(const plan::Schedule& s) { return plan::schedule_to_text(s); }

  std::shared_ptr<const ir::Program> program_;
  plan::Schedule planned_;
};

TEST_P(Replay, FullScheduleNeverAsksInference) {
  int64_t before = infer::infer_layouts_calls();
  auto replayed = plan_for(*program_, GetParam(), &planned_);
  ASSERT_TRUE(static_cast<bool>(replayed)) << replayed.error().to_text();
  EXPECT_EQ(infer::infer_layouts_calls(), before);
  EXPECT_EQ(text(*replayed), text(planned_));
}

TEST_P(Replay, EachDeletedFieldIsInferredAgain) {
  const plan::KernelSchedule& full = planned_.kernels[0];
  for (size_t v = 0; v < full.values.size(); ++v) {
    plan::Schedule given = planned_;
    given.kernels[0].values.erase(given.kernels[0].values.begin() + static_cast<long>(v));
    int64_t before = infer::infer_layouts_calls();
    auto again = plan_for(*program_, GetParam(), &given);
    ASSERT_TRUE(static_cast<bool>(again)) << full.values[v].value << ": " << again.error().to_text();
    EXPECT_EQ(infer::infer_layouts_calls(), before + 1);
    const plan::ValuePlan* inferred = plan::find_value(again->kernels[0], full.values[v].value);
    ASSERT_NE(inferred, nullptr);
    if (full.values[v].fragment) {
      EXPECT_TRUE(inferred->fragment->equivalent(*full.values[v].fragment)) << inferred->value;
    }
    if (full.values[v].memory) {
      EXPECT_TRUE(inferred->memory->equivalent(*full.values[v].memory)) << inferred->value;
    }
  }
  for (size_t o = 0; o < full.ops.size(); ++o) {
    plan::Schedule given = planned_;
    given.kernels[0].ops.erase(given.kernels[0].ops.begin() + static_cast<long>(o));
    auto again = plan_for(*program_, GetParam(), &given);
    ASSERT_TRUE(static_cast<bool>(again)) << full.ops[o].op << ": " << again.error().to_text();
    const plan::OpPlan* inferred = plan::find_op(again->kernels[0], full.ops[o].op);
    ASSERT_NE(inferred, nullptr);
    EXPECT_EQ(inferred->atom, full.ops[o].atom);
    EXPECT_EQ(inferred->vector, full.ops[o].vector);
  }
}

TEST_P(Replay, UnknownNamesAreRefused) {
  plan::Schedule given = planned_;
  given.kernels[0].values[0].value = "figure7:nothing";
  auto r = plan_for(*program_, GetParam(), &given);
  ASSERT_FALSE(static_cast<bool>(r));
  EXPECT_EQ(r.error().diagnostics[0].code, DiagCode::schedule_mismatch);
  EXPECT_NE(r.error().diagnostics[0].message.find("figure7:nothing"), std::string::npos);

  given = planned_;
  given.kernels[0].kernel = "other";
  r = plan_for(*program_, GetParam(), &given);
  ASSERT_FALSE(static_cast<bool>(r));
  EXPECT_EQ(r.error().diagnostics[0].code, DiagCode::schedule_mismatch);
}

TEST_P(Replay, IllegalFieldsAreRefused) {
  plan::Schedule given = planned_;
  for (plan::ValuePlan& v : given.kernels[0].values)
    if (v.value == "figure7:c")
      v.fragment = layout::Fragment::replicated(v.fragment->shape(), v.fragment->threads() * 2);
  auto r = plan_for(*program_, GetParam(), &given);
  ASSERT_FALSE(static_cast<bool>(r));
  EXPECT_EQ(r.error().diagnostics[0].code, DiagCode::schedule_illegal);

  given = planned_;
  for (plan::OpPlan& o : given.kernels[0].ops)
    if (!o.atom.empty()) o.atom = "no.such.atom";
  r = plan_for(*program_, GetParam(), &given);
  ASSERT_FALSE(static_cast<bool>(r));
  EXPECT_EQ(r.error().diagnostics[0].code, DiagCode::schedule_illegal);
  EXPECT_NE(r.error().diagnostics[0].message.find("no.such.atom"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Targets, Replay, ::testing::Values("sm_80", "x86-64-v3", "x86-64-v4"),
                         [](const auto& info) {
                           std::string n = info.param;
                           for (char& c : n)
                             if (c == '-') c = '_';
                           return n;
                         });

// What the schedule says is what lowering does: another register tile, another vector width.
TEST(ReplayHost, ChangedFieldsChangeTheCode) {
  auto program = program_from(read_file(source_path("tests/files/text/gemm.tl")));
  ASSERT_TRUE(program);
  auto planned = plan_for(*program, "x86-64-v4");
  ASSERT_TRUE(static_cast<bool>(planned)) << planned.error().to_text();
  const target::Target t = target_named("x86-64-v4");

  plan::Schedule given;
  plan::KernelSchedule kernel;
  kernel.kernel = planned->kernels[0].kernel;
  for (const plan::OpPlan& o : planned->kernels[0].ops)
    if (o.engine == plan::Engine::micro_kernel) {
      plan::OpPlan changed;
      changed.op = o.op;
      changed.atom = o.atom.substr(0, o.atom.rfind(':')) + ":2x16";
      kernel.ops.push_back(changed);
    }
  ASSERT_EQ(kernel.ops.size(), 1u);
  given.kernels.push_back(kernel);
  auto s = plan_for(*program, "x86-64-v4", &given);
  ASSERT_TRUE(static_cast<bool>(s)) << s.error().to_text();
  auto lowered = lowered_as_planned(*program, 0, s->kernels[0], t);
  ASSERT_TRUE(static_cast<bool>(lowered)) << lowered.error().to_text();
  EXPECT_TRUE(thread::verify_thread_program(*lowered).empty());
  EXPECT_NE(thread::print_thread_program(*lowered).find("mma 2x16x"), std::string::npos);
}

}  // namespace
}  // namespace tilegen::schedule
