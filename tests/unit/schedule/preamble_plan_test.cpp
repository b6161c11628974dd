// Which copies a producer begins before the kernel in front has ended.
#include "hopper_plans.h"
#include "support/diag_codes.h"

namespace tilegen::schedule {
namespace {

struct Product {
  std::string a = "readonly", b = "constant", begin = "0", end = "ceildiv(k, 64)", copy_b = "", kernel = "",
              around = "", close = "", row = "bx * 128";
};

std::string braces(const std::string& head, const std::string& annotation) {
  return annotation.empty() ? "" : head + " {" + annotation + "}";
}

std::string text_of(const Product& p) {
  return "tl 1 program p\ndim m >= 1\ndim n >= 1\ndim k >= 1\ntensor A: f16[m, k] " + p.a +
         "\ntensor B: f16[n, k] " + p.b +
         "\ntensor at: i64[n] readonly\ntensor C: f16[m, n]\n"
         "kernel g grid (by: ceildiv(m, 128), bx: ceildiv(n, 128)) threads 256" +
         braces(" with", p.kernel) +
         " {\n  alloc As: shared f16[128, 64]\n  alloc Bs: shared f16[128, 64]\n"
         "  alloc acc: fragment f32[128, 128]\n  fill acc, 0.0f32\n" +
         p.around + "  pipelined ko in " + p.begin + " .. " + p.end +
         " stages 4 {\n    copy A[by * 128 :+ 128, ko * 64 :+ 64] -> As\n    copy B[" + p.row +
         " :+ 128, ko * 64 :+ 64] -> Bs" + braces("", p.copy_b) +
         "\n    gemm As, Bs -> acc {transpose_b}\n  }\n" + p.close +
         "  copy acc -> C[by * 128 :+ 128, bx * 128 :+ 128]\n}\n";
}

Expected<plan::Schedule> plan_of(const Product& product, const char* target = "sm_90a") {
  auto p = program_from(text_of(product));
  if (!p) return Error(DiagCode::internal_error, "", "no program", "");
  return plan_for(*p, target);
}
std::optional<bool> preamble(const plan::KernelSchedule& k, const std::string& op) {
  const plan::OpPlan* plan = plan::find_op(k, op);
  return plan ? plan->preamble : std::nullopt;
}
bool notes_say(const plan::KernelSchedule& k, const std::string& op, const std::string& words) {
  return std::any_of(k.notes.begin(), k.notes.end(), [&](const plan::Note& n) {
    return n.path == op && n.text.find(words) != std::string::npos;
  });
}

TEST(Preamble, HasCopiesOfConstantTensors) {
  const auto s = plan_of({});
  ASSERT_TRUE(s);
  EXPECT_EQ(preamble(s->kernels[0], "g/ko/copy#1"), true);
  EXPECT_EQ(preamble(s->kernels[0], "g/ko/copy#0"), std::nullopt);
  const auto both = plan_of({.a = "constant"});
  ASSERT_TRUE(both);
  EXPECT_EQ(preamble(both->kernels[0], "g/ko/copy#0"), true);
  EXPECT_EQ(preamble(both->kernels[0], "g/ko/copy#1"), true);
  for (const char* walk : {"static", "dynamic"}) {
    const auto walked =
        plan_of({.end = "ceildiv(k, 64) - by", .kernel = std::string("persistence = ") + walk});
    ASSERT_TRUE(walked);
    EXPECT_EQ(preamble(walked->kernels[0], "g/ko/copy#1"), true) << walk;
  }
  const auto none = plan_of({.b = "readonly"});
  ASSERT_TRUE(none);
  EXPECT_EQ(preamble(none->kernels[0], "g/ko/copy#1"), std::nullopt);
}

TEST(Preamble, IsAsTheProgramSays) {
  const auto off = plan_of({.copy_b = "preamble = false"});
  ASSERT_TRUE(off);
  EXPECT_EQ(preamble(off->kernels[0], "g/ko/copy#1"), false);
  const auto on = plan_of({.copy_b = "preamble = true"});
  ASSERT_TRUE(on);
  EXPECT_EQ(preamble(on->kernels[0], "g/ko/copy#1"), true);
}

TEST(Preamble, NotesSayWhatWaits) {
  struct Case {
    Product product;
    const char* op;
    const char* words;
  };
  const Case cases[] = {
      {{.kernel = "dependent = false"}, "g/ko/copy#1", "the launch is not dependent"},
      {{.around = "  serial t in 0 .. 2 {\n", .close = "  }\n"},
       "g/t/ko/copy#1",
       "it does not stand in a counted loop of the kernel's body"},
      {{.row = "at[bx]"}, "g/ko/copy#1", "where it reads is told by elements in memory"},
      {{.row = "bx * 128 + ko // m"}, "g/ko/copy#1", "its producer divides by sizes in each iteration"},
  };
  for (const Case& c : cases) {
    const auto s = plan_of(c.product);
    ASSERT_TRUE(s) << c.words << s.error().to_text();
    EXPECT_NE(preamble(s->kernels[0], c.op), true) << c.words;
    std::string all;
    for (const plan::Note& n : s->kernels[0].notes) all += n.path + ": " + n.text + "\n";
    EXPECT_TRUE(notes_say(s->kernels[0], c.op, c.words)) << c.words << "\n" << all;
  }
}

TEST(Preamble, OfTensorsThatMayChangeIsRefused) {
  const auto refused = plan_of({.b = "readonly", .copy_b = "preamble = true"});
  ASSERT_FALSE(refused);
  const Diagnostic& d = refused.error().diagnostics[0];
  EXPECT_EQ(d.code, DiagCode::schedule_illegal);
  EXPECT_EQ(d.op, "g/ko/copy#1");
  EXPECT_NE(d.message.find("its tensor is not constant"), std::string::npos) << d.message;
  const auto elsewhere = plan_of({.copy_b = "preamble = true"}, "sm_80");
  ASSERT_FALSE(elsewhere);
}

}  // namespace
}  // namespace tilegen::schedule
