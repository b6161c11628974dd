// Roles of a block: what is planned, what may be given, and what is refused.
#include "schedule/grid/role_plan.h"
#include "support/diag_codes.h"

#include <gtest/gtest.h>

namespace tilegen::schedule {
namespace {

constexpr const char* kLists = "the given roles are not possible: ";

class GivenRoles : public testing::Test {
 protected:
  // Two pipelines: keys, and values.
  const std::vector<std::vector<std::string>> copies_ = {{"k/copy#0", "k/copy#1"}, {"k/copy#2"}};
  const target::Target target_ = *target::find_target("sm_90a");
  ir::Kernel kernel_;

  Expected<std::vector<plan::RolePlan>> plan(std::vector<plan::RolePlan> roles, int64_t threads = 256,
                                             int64_t registers = 100) {
    plan::KernelSchedule given;
    given.roles = std::move(roles);
    return plan_roles(kernel_, target_, threads, registers, copies_, &given);
  }
  std::string refusal(std::vector<plan::RolePlan> roles) {
    auto planned = plan(std::move(roles));
    if (planned) return "none";
    EXPECT_EQ(planned.error().diagnostics[0].code, DiagCode::schedule_illegal);
    EXPECT_EQ(planned.error().diagnostics[0].hint, "leave `roles` out to have them planned");
    const std::string& text = planned.error().diagnostics[0].message;
    return text.rfind(kLists, 0) == 0 ? text.substr(std::string(kLists).size()) : text;
  }
};

TEST_F(GivenRoles, OneProducerIsPlannedWhereTilesComeByTensorCopies) {
  auto planned = plan_roles(kernel_, target_, 256, 100, copies_, nullptr);
  ASSERT_TRUE(planned);
  ASSERT_EQ(planned->size(), 2u);
  EXPECT_EQ((*planned)[0].name, "consumer");
  EXPECT_EQ((*planned)[0].warps, 8);
  EXPECT_TRUE((*planned)[0].ops.empty());
  EXPECT_EQ((*planned)[1].name, "producer");
  EXPECT_EQ((*planned)[1].warps, 1);
  EXPECT_EQ((*planned)[1].ops, (std::vector<std::string>{"k/copy#0", "k/copy#1", "k/copy#2"}));
  EXPECT_TRUE(plan_roles(kernel_, target_, 256, 100, {}, nullptr)->empty());
}

TEST_F(GivenRoles, NumbersThatAreLeftOutArePlanned) {
  for (const auto& [said, warps, producer, consumer] :
       {std::tuple(plan::RolePlan{.name = "p"}, 1, 0, 0),
        {plan::RolePlan{.name = "p", .warps = 4}, 4, 40, 232},
        {plan::RolePlan{.name = "p", .registers = 24}, 4, 24, 240},
        {plan::RolePlan{.name = "p", .warps = 2}, 2, 0, 0}}) {
    auto roles = plan({{.name = "c"}, said});
    ASSERT_TRUE(roles) << roles.error().to_text();
    EXPECT_EQ((*roles)[1].warps, warps);
    EXPECT_EQ((*roles)[1].registers, producer);
    EXPECT_EQ((*roles)[0].registers, consumer);
  }
}

TEST_F(GivenRoles, SeveralProducersShareTheCopiesByPipelines) {
  auto roles = plan({{.name = "math"}, {.name = "values", .ops = {"k/copy#2"}}, {.name = "rest"}});
  ASSERT_TRUE(roles) << roles.error().to_text();
  EXPECT_EQ((*roles)[2].ops, (std::vector<std::string>{"k/copy#0", "k/copy#1"}));
  EXPECT_EQ((*roles)[1].warps, 1);
  EXPECT_EQ((*roles)[1].registers, 0);
  // Registers that are moved are those of whole warpgroups, and no more than the block has.
  roles =
      plan({{.name = "math"}, {.name = "values", .registers = 24, .ops = {"k/copy#2"}}, {.name = "rest"}});
  ASSERT_TRUE(roles) << roles.error().to_text();
  int64_t threads = 0, registers = 0;
  for (const plan::RolePlan& r : *roles) threads += 32 * r.warps, registers += 32 * r.warps * r.registers;
  EXPECT_EQ(threads, 512);
  EXPECT_LE(registers, 512 * 128);
  EXPECT_GT((*roles)[0].registers, 200);
}

TEST_F(GivenRoles, ListsHoldEveryCopyOnce) {
  using Roles = std::vector<plan::RolePlan>;
  const plan::RolePlan c{.name = "c"}, p{.name = "p"}, q{.name = "q"};
  const auto with = [](plan::RolePlan r, std::vector<std::string> ops) {
    r.ops = std::move(ops);
    return r;
  };
  for (const auto& [roles, why] : {
           std::pair(Roles{c}, "one role alone has all operations, for which the list is empty"),
           {Roles{with(c, {"k/copy#0"}), p},
            "role 'c' is the first, which has the operations that no other lists"},
           {Roles{c, p, q}, "neither 'p' nor 'q' lists operations"},
           {Roles{c, with(p, {"k/gemm#0"})}, "role 'p' lists 'k/gemm#0', which is no tensor copy to a tile"},
           {Roles{c, with(p, {"k/copy#2"})}, "no role lists 'k/copy#0'"},
           {Roles{c, with(p, {"k/copy#2"}), with(q, {"k/copy#2"})}, "roles 'p' and 'q' both list 'k/copy#2'"},
           {Roles{c, with(p, {"k/copy#0"}), q},
            "'k/copy#0' and 'k/copy#1' fill one pipeline, but are of two roles"},
           {Roles{c, with(p, {"k/copy#0", "k/copy#1", "k/copy#2"}), q}, "nothing is left for role 'q'"},
       })
    EXPECT_EQ(refusal(roles), why);
}

TEST_F(GivenRoles, NumbersAreCheckedAgainstTheMultiprocessor) {
  using Roles = std::vector<plan::RolePlan>;
  const auto roles = [](int64_t warps, int64_t producer, int64_t consumer) {
    return Roles{{.name = "c", .registers = consumer}, {.name = "p", .warps = warps, .registers = producer}};
  };
  for (const Roles& possible : {roles(4, 40, 232), roles(4, 24, 240), roles(2, 0, 0)}) {
    auto planned = plan(possible);
    ASSERT_TRUE(planned) << planned.error().to_text();
    EXPECT_EQ((*planned)[1].registers, possible[1].registers);
  }
  EXPECT_EQ(refusal(roles(4, 24, 248)),
            "the roles' registers are more than the 168 that each of 384 threads is launched with");
  EXPECT_EQ(refusal(roles(1, 40, 232)), "registers are moved between whole warpgroups of 128 threads");
  EXPECT_EQ(refusal(roles(4, 20, 232)), "20 registers are no multiple of 8 from 24 to 256");
  EXPECT_EQ(refusal(roles(4, 40, 0)), "registers are given for other roles than 'c', all roles' are needed");
  EXPECT_EQ(refusal(roles(4, 0, 232)), "registers are given for other roles than 'p', all roles' are needed");
  EXPECT_EQ(refusal(roles(32, 0, 0)), "1024 producing threads beside 256 are not possible on sm_90a");
  EXPECT_EQ(refusal({{.name = "c", .warps = 4}, {.name = "p"}}),
            "role 'c' has 4 warps, but computing are 256 threads");
  plan::KernelSchedule given;
  given.roles = Roles{{.name = "c"}, {.name = "p"}};
  auto nothing = plan_roles(kernel_, target_, 256, 100, {}, &given);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().diagnostics[0].message,
            std::string(kLists) + "no tile comes by tensor copies, a producer has nothing to do");
}

}  // namespace
}  // namespace tilegen::schedule
