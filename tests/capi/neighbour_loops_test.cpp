// Serial loops of threads over elements beside each other, which are written out, against the same loops of
// as many trips as the launch says, which are not.
#include <gtest/gtest.h>

#include "run_everywhere.h"

namespace tilegen::test {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

TEST(NeighbourLoops, AreWhatLoopsOfTheLaunchAre) {
  for (const std::string body : {
           "serial i in 0 .. 4 { Y[at + i] = X[at + 3 - i] }",
           "var sum = X[at] serial i in 0 .. 4 { sum = sum * 3 + X[at + i] } Y[at] = sum Y[at + 1] = sum + 1",
           "serial i in 0 .. 4 { s[4 * t + i] = X[at + i] } serial i in 0 .. 4 { Y[at + i] = s[508 - 4 * t + "
           "i] }",
           "serial i in 0 .. 4 { s[4 * t + i] = X[at + i] } serial i in 0 .. 4 { s[4 * t + i] += s[4 * t + "
           "i] * t }"
           " Y[at] = s[511 - 4 * t] Y[at + 3] = s[(4 * t + 9) % 512]",
           "s[t] = 0 s[t + 128] = 0 serial i in 0 .. 4 { s[t + i] = X[at + i] } Y[at] = s[131 - t]",
           "serial i in 0 .. 4 { let k = at + i if X[k] > 30 { Y[k] = X[k] } else { Y[k] = 0 - X[k] } }",
           "serial j in 0 .. 3 { serial i in 0 .. 4 { s[4 * t + i] = X[at + i] + j }"
           " serial i in 0 .. 4 { Y[at + i] = s[508 - 4 * t + i] } }",
           "var q = X[at] serial j in 0 .. 3 { let before = q serial i in 0 .. 4 { q += X[at + i] * (j + "
           "before) } }"
           " Y[at + 2] = q",
       }) {
    const std::string text =
        "kernel k grid (b: ceildiv(n, 512)) threads 128 {\n  alloc s: shared i64[512]\n"
        "  threads t in 128 {\n    let at = b * 512 + 4 * t\n" +
        body + "\n  }\n}\n";
    const Program written_out = parse(text), loops = parse(replaced(text, "0 .. 4", "0 .. n // 128"));
    const std::vector<int64_t> expected = run(loops, "", numbers(512));
    for (const char* executor : kExecutors) {
      EXPECT_EQ(run(written_out, executor, numbers(512)), expected) << executor << "\n" << body;
      EXPECT_EQ(run(loops, executor, numbers(512)), expected) << executor << "\n" << body;
    }
  }
}

}  // namespace
}  // namespace tilegen::test
