// Rings of slots that threads fill asynchronously, groups ahead of where others read them: taken with the
// waits that they need, whatever the number of rounds, and refused with weaker ones.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "ir/text.h"
#include "support/diag_codes.h"

namespace tilegen::driver {
namespace {

struct Ring {
  int ahead = 1;
  std::string rounds;   // may name d
  std::string facts;    // of d
  int first_wait = 0;   // groups that may be under way when the loop begins
  int wait = 0;         // in each round
  bool guarded = true;  // no round copies for one behind the last
};

std::string text_of(const Ring& r) {
  const std::string ahead = std::to_string(r.ahead), slots = std::to_string(r.ahead + 1);
  const std::string copy =
      "copy_async X[v + " + ahead + ", t :+ 1] -> r[(v + " + ahead + ") % " + slots + ", t :+ 1]";
  return "tl 1 program ring\ndim d" + r.facts +
         "\ntensor X: f32[d, 128] readonly\ntensor Y: f32[128]\nkernel k grid (g: 1) threads 128 {\n"
         "  alloc r: shared f32[" +
         slots + ", 128]\n  threads t in 128 {\n    var s = 0.0f32\n    unroll v in 0 .. " + ahead +
         " { copy_async X[v, t :+ 1] -> r[v, t :+ 1] commit_group }\n    wait_group " +
         std::to_string(r.first_wait) + "\n    serial v in 0 .. " + r.rounds + " {\n      wait_group " +
         std::to_string(r.wait) + "\n      s = s + r[v % " + slots + ", (t + 48) % 128]\n      " +
         (r.guarded ? "if v + " + ahead + " < " + r.rounds + " { " + copy + " }" : copy) +
         "\n      commit_group\n    }\n    wait_group 0\n    Y[t] = s\n  }\n}\n";
}

// Empty: it compiles.
std::string refusal(const Ring& r) {
  auto program = ir::parse_program(text_of(r), "ring.tl", Limits{});
  if (!program) return program.error().to_text();
  const auto target = target::find_target("sm_80");
  CompileOptions options;
  options.verify = true;
  const auto artifact = compile(std::make_shared<const ir::Program>(std::move(*program)), *target, options);
  return artifact ? "" : artifact.error().to_text();
}

struct Rounds {
  const char *count, *facts;
  int most;
};
const Rounds kRounds[] = {
    {"2", "", 2},
    {"3", "", 3},
    {"4", "", 4},
    {"5", "", 5},
    {"9", "", 9},
    {"ceildiv(d, 16)", "", 1000},
    {"ceildiv(d, 16)", " <= 32", 2},
    {"ceildiv(d, 16)", " <= 48", 3},
    {"ceildiv(d, 16)", " <= 64", 4},
    {"ceildiv(d, 16)", " <= 80", 5},
    {"ceildiv(d, 16)", " <= 2000", 125},
    {"d", " <= 3", 3},
    {"d", " >= 1 <= 5", 5},
};

TEST(CopyRings, RoundsOfAnyNumberNeedNoFurtherWait) {
  for (const auto& [rounds, facts, most] : kRounds)
    for (int ahead = 1; ahead <= 3; ++ahead)
      for (const bool guarded : {true, false}) {
        const Ring ring{ahead, rounds, facts, ahead - 1, ahead - 1, guarded};
        EXPECT_EQ(refusal(ring), "") << text_of(ring);
      }
}

// The groups in front are awaited, so what a round reads too early is an earlier round's. A copy is read
// `ahead` rounds later, if there are so many.
TEST(CopyRings, RoundsThatReadTooEarlyAreRefused) {
  const std::string code = diag_name(DiagCode::misplaced_statement);
  for (const auto& [rounds, facts, most] : kRounds)
    for (int ahead = 1; ahead <= 3; ++ahead) {
      const Ring ring{ahead, rounds, facts, 0, ahead, true};
      const std::string said = refusal(ring);
      EXPECT_EQ(said.find(code) != std::string::npos, most > ahead) << said << text_of(ring);
    }
}

}  // namespace
}  // namespace tilegen::driver
