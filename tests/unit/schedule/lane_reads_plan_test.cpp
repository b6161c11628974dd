// What the plan says of lanes that read each other's elements: they vote, or hand them over.
#include "plan_support.h"

namespace tilegen::schedule {
namespace {

// The reasons of the plan, of threads whose value is said(x).
std::string reasons(const std::string& said, const std::string& target) {
  auto program = program_from(
      "tl 1 program p\ntensor A: i32[128] readonly\ntensor Y: u32[128]\nkernel k grid (b: 1) threads 128 {\n"
      " threads w, l in 4, 32 {\n  let x = A[w * 32 + l]\n  Y[w * 32 + l] = " +
      said + "\n }\n}\n");
  auto schedule = plan_for(*program, target);
  EXPECT_TRUE(static_cast<bool>(schedule)) << schedule.error().to_text();
  std::string text;
  for (const plan::OpPlan& op : schedule->kernels[0].ops) text += op.reason + "\n";
  return text;
}

bool has(const std::string& text, const char* words) { return text.find(words) != std::string::npos; }

TEST(LaneReads, VotesAreNoShuffles) {
  for (const char* target : {"sm_80", "sm_90a", "gfx942"}) {
    for (const char* vote : {"ballot(x > 3)", "match_any(x)", "select(any(x > 3), 1, 0)"}) {
      const std::string text = reasons(vote, target);
      EXPECT_TRUE(has(text, "lanes vote on elements of k:")) << vote << " " << target << "\n" << text;
      EXPECT_FALSE(has(text, "shuffle")) << vote << " " << target << "\n" << text;
    }
    const std::string text = reasons("ballot(x > 3) + cast(u32, shuffle_xor(x, 1))", target);
    EXPECT_TRUE(has(text, "lanes vote on elements of k:")) << text;
    EXPECT_TRUE(has(text, "lanes hand over elements of k:")) << text;
    EXPECT_TRUE(has(text, "by 1 shuffle each")) << text;
  }
}

}  // namespace
}  // namespace tilegen::schedule
