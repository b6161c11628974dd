// Work of parallel loops' expressions.
#include "cost/expression_work.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "target/registry.h"

namespace tilegen::cost {
namespace {

// Instructions that all loops of the block of threads issue.
double issued(const std::string& value) {
  const auto p = ir::parse_program(
      "tl 1 program p\ntensor X: i32[128] readonly\ntensor Y: u32[128]\nkernel k grid (b: 1) threads 128 {\n"
      "  threads w, l in 4, 32 {\n    let x = X[w * 32 + l]\n    Y[w * 32 + l] = " +
          value + "\n  }\n}\n",
      "p.tl", Limits());
  if (!p) {
    ADD_FAILURE() << p.error().to_text();
    return 0;
  }
  double all = 0;
  const target::Target target = *target::find_target("sm_80");
  ir::for_each_statement(*p, p->kernels[0].body, [&](ir::StmtId s, int) {
    if (const auto* loop = p->as<ir::Loop>(s))
      all += loop_work(*p, *loop, nullptr, 128, true, target)[Pipe::issue];
  });
  return all;
}

// Whatever the group says is one instruction beside what is asked, not one for each lane.
TEST(ExpressionWork, VotesAreInstructions) {
  const double asked = issued("select(x > 3, 1u32, 0u32)");
  EXPECT_GT(issued("ballot(x > 3)"), asked);
  EXPECT_LE(issued("ballot(x > 3)"), 2 * asked);
  EXPECT_LE(issued("select(any(x > 3), 1u32, 0u32)"), 3 * asked);
  EXPECT_LE(issued("match_any(x)"), 2 * asked);
}

}  // namespace
}  // namespace tilegen::cost
