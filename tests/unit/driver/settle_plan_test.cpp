// What follows when the code of a plan is rejected: the next form, a note, and a refusal by name where
// nothing is left.
#include "driver/settle_plan.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "plan/schedule.h"
#include "support/diag_codes.h"

namespace tilegen::driver {
namespace {

using schedule::PlanForm;
using thread::ThreadProgram;

const char* const kProgram = R"(tl 1 program p
dim m
dim n
dim k
tensor A: f16[m, k] readonly
tensor B: f16[k, n] readonly
tensor C: f32[m, n]
tensor S: f32[m]

kernel gemm grid (by: ceildiv(m, 128), bx: ceildiv(n, 128)) threads 256 {
  alloc a: shared f16[128, 64]
  alloc b: shared f16[64, 128]
  alloc c: fragment f32[128, 128]
  fill c, 0.0f32
  pipelined ko in 0 .. ceildiv(k, 64) {
    copy A[by * 128 :+ 128, ko * 64 :+ 64] -> a
    copy B[ko * 64 :+ 64, bx * 128 :+ 128] -> b
    gemm a, b -> c
  }
  copy c -> C[by * 128 :+ 128, bx * 128 :+ 128]
}

kernel sums grid (b: ceildiv(m, 64)) threads 128 {
  alloc x: fragment f32[64, 64]
  alloc sum: fragment f32[64]
  fill sum, 0.0f32
  serial t in 0 .. ceildiv(n, 64) {
    copy C[b * 64 :+ 64, t * 64 :+ 64] -> x
    reduce x -> sum {axis=1, accumulate}
  }
  copy sum -> S[b * 64 :+ 64]
}
)";

std::shared_ptr<const ir::Program> program() {
  auto p = ir::parse_program(kProgram, "test.tl", Limits{});
  EXPECT_TRUE(p) << p.error().to_text();
  return std::make_shared<const ir::Program>(std::move(*p));
}

template <class Node>
bool has(const ThreadProgram& p) {
  return std::any_of(p.stmts.begin(), p.stmts.end(),
                     [](const thread::Stmt& s) { return std::holds_alternative<Node>(s.node); });
}

std::vector<std::string> says(bool wrong) {
  return wrong ? std::vector<std::string>{"gemm/ko: a test says no"} : std::vector<std::string>{};
}

std::vector<plan::Note> notes_of_forms(const Artifact& a) {
  std::vector<plan::Note> notes;
  for (const plan::KernelSchedule& k : a.schedule.kernels)
    for (const plan::Note& n : k.notes)
      if (n.text.find("as first planned it was rejected") != n.text.npos) notes.push_back(n);
  return notes;
}

TEST(SettlePlan, FormsLeaveOutMoreAndMore) {
  const auto p = program();
  const auto target = target::find_target("sm_90a");
  bool stores = true, loads = true, products = true, copies = true, matrices = true;
  for (int form = 0; form <= static_cast<int>(PlanForm::multiply_adds); ++form) {
    CompileOptions options;
    options.form = static_cast<PlanForm>(form);
    const auto a = compile(p, *target, options);
    ASSERT_TRUE(a) << a.error().to_text();
    const ThreadProgram& gemm = (*a)->kernels[0];
    stores = has<thread::TensorStore>(gemm), loads = has<thread::TensorLoad>(gemm),
    products = has<thread::WarpgroupMma>(gemm);
    copies = has<thread::AsyncCopy>(gemm);
    matrices =
        products || std::any_of((*a)->schedule.kernels[0].ops.begin(), (*a)->schedule.kernels[0].ops.end(),
                                [](const plan::OpPlan& o) { return o.atom.starts_with("mma."); });
    EXPECT_EQ(gemm.launched_var.valid(), options.form == PlanForm::full) << form;
    EXPECT_EQ(stores, options.form < PlanForm::no_tensor_stores) << form;
    EXPECT_EQ(loads && products, options.form < PlanForm::no_tensor_copies) << form;
    EXPECT_EQ(copies, options.form == PlanForm::no_tensor_copies) << form;
    EXPECT_EQ(matrices, options.form < PlanForm::multiply_adds) << form;
    for (const plan::OpPlan& o : (*a)->schedule.kernels[1].ops)
      EXPECT_TRUE(options.form == PlanForm::full || o.deferred_to.value_or("").empty()) << o.op;
  }
}

TEST(SettlePlan, ARejectedKernelTakesTheNextFormAndSaysSo) {
  const auto p = program();
  const auto target = target::find_target("sm_90a");
  CompileOptions options;
  std::vector<Error> rejected;
  options.rejected = [&](const Error& e) { rejected.push_back(e); };
  const auto first = compile(p, *target, options);
  ASSERT_TRUE(first);
  EXPECT_TRUE(rejected.empty());
  EXPECT_TRUE(notes_of_forms(**first).empty());

  options.check = [](const ThreadProgram& code) { return says(has<thread::TensorStore>(code)); };
  const auto a = compile(p, *target, options);
  ASSERT_TRUE(a) << a.error().to_text();
  EXPECT_FALSE(has<thread::TensorStore>((*a)->kernels[0]));
  EXPECT_TRUE(has<thread::WarpgroupMma>((*a)->kernels[0]));
  EXPECT_EQ(rejected.size(), 2u);  // in any order, and in program order
  for (const Error& e : rejected) EXPECT_EQ(e.diagnostics[0].code, DiagCode::internal_error);
  const std::vector<plan::Note> notes = notes_of_forms(**a);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].path, "gemm");
  EXPECT_EQ(notes[0].text,
            "the kernel is planned without tensor copies to tensors: as first planned it was rejected, "
            "gemm/ko: a test says no");
  EXPECT_EQ((*a)->schedule.kernels[1], (*first)->schedule.kernels[1]);
}

// What is shown of a plan is what compiles.
TEST(SettlePlan, AScheduleWithoutCodeIsThatOfTheCode) {
  for (const char* name : {"sm_80", "sm_90a", "sim:sm_90a", "gfx942"}) {
    CompileOptions options;
    options.check = [](const ThreadProgram& code) {
      return says(has<thread::TensorStore>(code) || has<thread::AsyncCopy>(code));
    };
    const auto whole = compile(program(), *target::find_target(name), options);
    ASSERT_TRUE(whole) << whole.error().to_text();
    options.plan_only = true;
    const auto planned = compile(program(), *target::find_target(name), options);
    ASSERT_TRUE(planned) << planned.error().to_text();
    EXPECT_EQ(plan::schedule_to_text((*planned)->schedule), plan::schedule_to_text((*whole)->schedule));
    EXPECT_EQ(notes_of_forms(**planned).size(), std::string(name) == "gfx942" ? 0u : 1u) << name;
    EXPECT_TRUE((*planned)->kernels.empty());
  }
}

TEST(SettlePlan, EveryLevelOfASimulatedTargetIsSettled) {
  CompileOptions options;
  options.check = [](const ThreadProgram& code) { return says(has<thread::WarpgroupMma>(code)); };
  const auto a = compile(program(), *target::find_target("sim:sm_90a"), options);
  ASSERT_TRUE(a) << a.error().to_text();
  EXPECT_GT((*a)->kernels.size(), 2u);
  for (const ThreadProgram& code : (*a)->kernels) EXPECT_FALSE(has<thread::WarpgroupMma>(code)) << code.name;
}

TEST(SettlePlan, WhatNoFormServesIsRefusedByName) {
  for (const char* name : {"sm_80", "sm_90a"}) {
    CompileOptions options;
    size_t rejected = 0;
    options.rejected = [&](const Error&) { ++rejected; };
    options.check = [](const ThreadProgram& code) { return says(code.name == "gemm"); };
    const auto a = compile(program(), *target::find_target(name), options);
    ASSERT_FALSE(a);
    const Diagnostic& d = a.error().diagnostics[0];
    EXPECT_EQ(d.code, DiagCode::target_unsupported);
    EXPECT_EQ(d.op, "gemm");
    EXPECT_EQ(d.stage, "verify");
    EXPECT_NE(d.message.find("gemm/ko: a test says no"), d.message.npos) << d.message;
    EXPECT_FALSE(d.hint.empty());
    EXPECT_EQ(rejected, std::string(name) == "sm_80" ? 4u : 7u);
  }
}

// What a host's verifier rejects is a defect: there is nothing to leave out.
TEST(SettlePlan, AHostHasOneForm) {
  CompileOptions options;
  options.verify = true;
  options.check = [](const ThreadProgram&) { return says(true); };
  const auto a = compile(program(), *target::find_target("host"), options);
  ASSERT_FALSE(a);
  EXPECT_EQ(a.error().diagnostics[0].code, DiagCode::internal_error);
}

TEST(SettlePlan, GivenDecisionsAreNamedAndStay) {
  const auto target = target::find_target("sm_90a");
  CompileOptions options;
  const auto planned = compile(program(), *target, options);
  ASSERT_TRUE(planned);
  options.schedule = (*planned)->schedule;
  options.schedule->kernels[0].persistence->persistent = false;
  options.check = [](const ThreadProgram& code) {
    return says(code.name == "gemm" && !code.launched_var.valid());
  };
  const auto named = compile(program(), *target, options);
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().diagnostics[0].code, DiagCode::schedule_illegal);
  EXPECT_EQ(named.error().diagnostics[0].op, "gemm: persistence");
  EXPECT_NE(named.error().diagnostics[0].message.find("a test says no"), std::string::npos);
  // No decision alone is at fault.
  options.check = [](const ThreadProgram& code) { return says(code.name == "gemm"); };
  const auto all = compile(program(), *target, options);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().diagnostics[0].code, DiagCode::schedule_illegal);
  EXPECT_EQ(all.error().diagnostics[0].op, "gemm");
}

}  // namespace
}  // namespace tilegen::driver
