// Programs from text, planned and run on the simulator against the interpreter.
#pragma once

#include "check/check_program.h"
#include "ir/text.h"
#include "simulated_launch.h"

namespace tilegen::lower {

inline ir::Program parse(const std::string& text) {
  auto program = ir::parse_program(text, "test.tl", Limits{});
  EXPECT_TRUE(program) << program.error().to_text();
  if (!program) return {};
  for (const Diagnostic& d : check::check_program(*program, Limits{})) ADD_FAILURE() << d.to_text();
  return std::move(*program);
}

inline plan::Schedule plan_for(const ir::Program& p, const target::Target& target) {
  auto schedule = schedule::plan_program(p, target, {});
  EXPECT_TRUE(schedule) << schedule.error().to_text();
  return schedule ? std::move(*schedule) : plan::Schedule{};
}

inline void expect_simulated(const char* text, const std::vector<int64_t>& dims) {
  const ir::Program p = parse(text);
  ASSERT_FALSE(testing::Test::HasFailure());
  const target::Target target = *target::find_target("sm_80");
  const plan::Schedule schedule = plan_for(p, target);
  ASSERT_FALSE(testing::Test::HasFailure());
  test::run_simulated(p, target, schedule, dims, true);
  test::run_simulated(p, target, schedule, dims, false);
}

}  // namespace tilegen::lower
