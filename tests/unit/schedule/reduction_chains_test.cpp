// Partial results that a thread keeps while it reduces.
#include "schedule/products/reduction_chains.h"

#include "hopper_plans.h"
#include "plan_support.h"

namespace tilegen::schedule {
namespace {

// Of the first reduction.
int64_t chains(const std::string& text, const char* target, const plan::Schedule* given = nullptr) {
  auto p = program_from(text);
  EXPECT_TRUE(p);
  auto s = plan_for(*p, target, given);
  EXPECT_TRUE(s) << s.error().to_text();
  if (!s) return -1;
  for (const plan::OpPlan& op : s->kernels[0].ops)
    if (op.op.find("reduce#0") != std::string::npos) return op.chains;
  return -1;
}

// Scores of a product, reduced by row.
std::string scores(const std::string& kind, int columns) {
  const std::string n = std::to_string(columns);
  return "tl 1 program p\ndim n divisible 8\ntensor Q: f16[n, 64] readonly\ntensor K: f16[n, 64] readonly\n"
         "tensor T: f32[n]\nkernel a grid (by: ceildiv(n, 64)) threads 128 {\n alloc Qs: shared f16[64, 64]\n"
         " alloc Ks: shared f16[" +
         n + ", 64]\n alloc s: fragment f32[64, " + n +
         "]\n alloc top: fragment f32[64]\n copy Q[by * 64 :+ 64, 0 :+ 64] -> Qs\n fill top, 0.0f32\n"
         " pipelined kb in 0 .. ceildiv(n, " +
         n + ") stages 2 {\n copy K[kb * " + n + " :+ " + n +
         ", 0 :+ 64] -> Ks\n gemm Qs, Ks -> s {transpose_b, clear}\n reduce s -> top {kind=" + kind +
         ", axis=1, accumulate}\n }\n copy top -> T[by * 64 :+ 64]\n}\n";
}

TEST(ReductionChains, TwoForExtremesOfManyElementsBesideAProducer) {
  EXPECT_EQ(chains(scores("max", 64), "sm_90a"), 2);
  EXPECT_EQ(chains(scores("min", 64), "sm_90a"), 2);
  EXPECT_EQ(chains(scores("sum", 64), "sm_90a"), 1) << "sums keep their order";
  EXPECT_EQ(chains(scores("max", 32), "sm_90a"), 1) << "few elements";
  EXPECT_EQ(chains(scores("max", 64), "sm_80"), 1) << "other warps fill the time";
}

TEST(ReductionChains, TheGivenAreTaken) {
  plan::Schedule given;
  given.kernels = {{.kernel = "a", .ops = {{.op = "a/kb/reduce#0", .chains = 2}}}};
  EXPECT_EQ(chains(scores("max", 64), "sm_80", &given), 2);
  given.kernels[0].ops[0].chains = 1;
  EXPECT_EQ(chains(scores("max", 64), "sm_90a", &given), 1);
  given.kernels[0].ops[0].chains = 2;
  auto refused = plan_for(*program_from(scores("sum", 64)), "sm_90a", &given);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().to_text().find("gives `chains` 2"), std::string::npos);
}

}  // namespace
}  // namespace tilegen::schedule
