// What optional tensors leave of a plan: everything but the copy engine for themselves.
#include "hopper_plans.h"

namespace tilegen::schedule {
namespace {

using plan::Engine;

plan::Schedule one_op(const std::string& kernel, const std::string& op, Engine e) {
  plan::Schedule s;
  s.kernels.resize(1);
  s.kernels[0].kernel = kernel;
  s.kernels[0].ops.resize(1);
  s.kernels[0].ops[0].op = op;
  s.kernels[0].ops[0].engine = e;
  return s;
}

// A product with a bias that every launch passes, or that it may leave out.
std::string product(bool optional) {
  const std::string bias =
      " copy bias[bx * 256 :+ 256] -> row\n parallel i, j in 128, 256 { acc[i, j] = acc[i, j] + row[j] }\n";
  std::string text = gemm_text(128, 256, 64, 4, 256, "f16", " alloc row: fragment f32[256]\n",
                               optional ? " if present(bias) {\n" + bias + " }\n" : bias);
  return text.replace(
      text.find("\nkernel"), 7,
      std::string("\ntensor bias: f32[n] readonly") + (optional ? " optional" : "") + "\nkernel");
}

// The plan of the blocks and of the loop, as text.
std::string of_the_loop(const std::string& text, const char* target) {
  const auto program = program_from(text);
  if (!program) return {};
  auto schedule = plan_for(*program, target);
  if (!schedule) return schedule.error().to_text();
  plan::KernelSchedule& k = schedule->kernels[0];
  std::erase_if(k.ops, [](const plan::OpPlan& o) { return o.op.find("/ko/") == std::string::npos; });
  plan::Schedule shown;
  shown.kernels.resize(1);
  plan::KernelSchedule& own = shown.kernels[0];
  own.kernel = k.kernel;
  own.threads = k.threads;
  own.roles = k.roles;
  own.pipelines = k.pipelines;
  own.cluster = k.cluster;
  own.persistence = k.persistence;
  if (own.persistence) own.persistence->reason.clear();
  if (own.cluster) own.cluster->reason.clear();
  if (own.roles)
    for (plan::RolePlan& r : *own.roles) r.reason.clear();
  for (const plan::OpPlan& o : k.ops) {
    plan::OpPlan& op = own.ops.emplace_back();
    op.op = o.op;
    op.engine = o.engine;
    op.atom = o.atom;
    op.vector = o.vector;
  }
  return plan::schedule_to_text(shown);
}

TEST(OptionalPlan, ALoopIsPlannedAsBesideWhatIsThere) {
  for (const char* target : {"sm_90a", "sm_80", "gfx942"}) {
    const std::string optional = of_the_loop(product(true), target);
    EXPECT_EQ(optional, of_the_loop(product(false), target)) << target;
    EXPECT_NE(optional.find("gemm/ko/gemm#0"), std::string::npos) << optional;
  }
  const auto program = program_from(product(true));
  ASSERT_TRUE(program);
  const plan::Schedule s = planned(*program);
  EXPECT_EQ(engines(s, Engine::tensor_copy), 3);  // A, B and the result
  EXPECT_EQ(engines(s, Engine::warpgroup_mma), 1);
}

// A null address has no tensor map: such a tensor is copied by threads, and who asks for more is told why.
TEST(OptionalPlan, NoTensorMapOfWhatMayBeNull) {
  const auto with = [](const std::string& mark) {
    return program_from(
        "tl 1 program p\ndim m\ntensor X: f16[m, 64] readonly" + mark +
        "\ntensor Y: f16[m, 64]\nkernel k grid (b: ceildiv(m, 64)) threads 128 {\n"
        " alloc t: shared f16[64, 64]\n if " +
        (mark.empty() ? "m > 3" : "present(X)") +
        " {\n copy X[b * 64 :+ 64, 0 :+ 64] -> t\n copy t -> Y[b * 64 :+ 64, 0 :+ 64]\n }\n}\n");
  };
  const plan::Schedule given = one_op("k", "k/if#0/copy#0", Engine::tensor_copy);
  EXPECT_EQ(refused(*with(""), given), "not refused");
  const auto optional = with(" optional");
  EXPECT_NE(refused(*optional, given).find("'X' is optional, and a null address has no tensor map"),
            std::string::npos)
      << refused(*optional, given);
  const auto s = plan_for(*optional, "sm_90a");
  ASSERT_TRUE(s) << s.error().to_text();
  EXPECT_EQ(*plan::find_op(s->kernels[0], "k/if#0/copy#0")->engine, Engine::async_copy);
}

}  // namespace
}  // namespace tilegen::schedule
