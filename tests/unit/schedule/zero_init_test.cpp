// Which fills are left to the first product of the loop after.
#include "schedule/products/zero_init.h"

#include "plan_support.h"

namespace tilegen::schedule {
namespace {

struct Parts {
  std::string fill = " fill acc, 0.0f32\n";
  std::string between;
  std::string gemm = " gemm As, Bs -> acc\n";
  std::string loop = "pipelined";
};

std::string text_of(const Parts& t) {
  return "tl 1 program p\ndim m divisible 8\ndim n divisible 8\ndim k divisible 8\n"
         "tensor A: f16[m, k] readonly\ntensor B: f16[k, n] readonly\ntensor C: f32[m, n]\n"
         "kernel g grid (by: ceildiv(m, 128), bx: ceildiv(n, 128)) threads 256 {\n"
         " alloc As: shared f16[128, 64]\n alloc Bs: shared f16[64, 128]\n"
         " alloc acc: fragment f32[128, 128]\n" +
         t.fill + t.between + " " + t.loop +
         " ko in 0 .. ceildiv(k, 64) {\n copy A[by * 128 :+ 128, ko * 64 :+ 64] -> As\n"
         " copy B[ko * 64 :+ 64, bx * 128 :+ 128] -> Bs\n" +
         t.gemm + " }\n copy acc -> C[by * 128 :+ 128, bx * 128 :+ 128]\n}\n";
}

Expected<plan::Schedule> plan_of(const Parts& t, const char* target, const plan::Schedule* given = nullptr) {
  auto p = program_from(text_of(t));
  EXPECT_TRUE(p);
  return plan_for(*p, target, given);
}

bool elided(const Parts& t, const char* target = "sm_90a") {
  auto s = plan_of(t, target);
  EXPECT_TRUE(s) << s.error().to_text();
  const plan::OpPlan* fill = plan::find_op(s->kernels[0], "g/fill#0");
  EXPECT_TRUE(fill);
  return fill && fill->elided.value_or(false);
}

TEST(ZeroInit, OfAllThatTheOnlyProductOverwrites) {
  EXPECT_TRUE(elided({}));
  EXPECT_TRUE(elided({.fill = " fill acc, -0.0f32\n"}));
  EXPECT_TRUE(elided({.loop = "serial"}));
}

TEST(ZeroInit, OtherFillsAreDone) {
  EXPECT_FALSE(elided({}, "sm_80")) << "no products of warpgroups";
  EXPECT_FALSE(elided({.fill = " fill acc, 1.0f32\n"})) << "not zero";
  EXPECT_FALSE(elided({.fill = " fill acc[0 :+ 64, 0 :+ 128], 0.0f32\n"})) << "a part";
  EXPECT_FALSE(elided({.between = " parallel i, j in 128, 128 { acc[i, j] = acc[i, j] + 1.0f32 }\n"}))
      << "something between";
  EXPECT_FALSE(elided({.gemm = " gemm As, Bs -> acc\n parallel i, j in 128, 128 { acc[i, j] = acc[i, j] * "
                               "2.0f32 }\n"}))
      << "more in the loop";
}

TEST(ZeroInit, TheGivenIsTaken) {
  auto planned = plan_of({}, "sm_90a");
  ASSERT_TRUE(planned);
  plan::Schedule given = *planned;
  for (plan::OpPlan& op : given.kernels[0].ops)
    if (op.op == "g/fill#0") op.elided = false;
  auto again = plan_of({}, "sm_90a", &given);
  ASSERT_TRUE(again) << again.error().to_text();
  EXPECT_FALSE(*plan::find_op(again->kernels[0], "g/fill#0")->elided);

  plan::Schedule impossible;
  impossible.kernels = {{.kernel = "g", .ops = {{.op = "g/fill#0", .elided = true}}}};
  auto refused = plan_of({}, "sm_80", &impossible);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().to_text().find("gives `elided` true"), std::string::npos)
      << refused.error().to_text();
}

}  // namespace
}  // namespace tilegen::schedule
