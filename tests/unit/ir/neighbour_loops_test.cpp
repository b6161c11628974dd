// Serial loops in blocks of threads whose iterations tell no other thread anything, over elements beside each
// other, are written out like unrolled ones; all others stay loops.
#include <gtest/gtest.h>

#include <string>

#include "ir/text.h"

namespace tilegen::ir {
namespace {

std::string printed(const std::string& body) {
  const auto p = parse_program(
      "tl 1 program p\ndim m\ntensor X: f32[m, 512] readonly\ntensor Y: f32[m, 512]\n"
      "tensor I: i64[m] readonly\n"
      "kernel k grid (b: m) threads 128 {\n  alloc s: shared f32[512]\n  alloc r: shared f32[128, 8]\n"
      "  view v = transpose(r)\n  threads w, l in 4, 32 {\n    let t = w * 32 + l\n    var sum = 0.0f32\n"
      "    let at = w * 128 + l * 4\n    barrier\n    " +
          body + "\n    barrier\n    Y[b, t] += sum\n  }\n}\n",
      "test.tl", Limits{});
  return p ? print_program(*p) : p.error().diagnostics[0].message;
}

bool is_loop(const std::string& text) { return text.find("serial i in") != text.npos; }

TEST(NeighbourLoops, AreLikeUnrolledOnes) {
  for (const std::string body : {
           "i in 0 .. 4 { sum += X[b, at + i] }",
           "i in 0 .. 4 { sum += X[b, 4 * t + 3 - i] * s[t] }",
           "i in 1 .. 5 { let x = X[b, at + i] if x > 0 { sum += x } }",
           "i in 0 .. 4 { s[w * 128 + l * 4 + i] = X[b, at + i] }",
           "i in 0 .. 4 { s[at + i] = X[b, i] }",
           "i in 0 .. 4 { let to = at + i s[to] = s[to] * 2 }",
           "i in 0 .. 4 { s[at + i] += X[b, at + i] }",
           "i in 0 .. 4 { s[508 - 4 * l - 128 * w + i] = X[b, i] }",
           "i in 0 .. 8 { r[w * 32 + l, i] = X[b, i] }",
           "i in 0 .. 4 { if X[b, i] > 0 { Y[b, at + i] = 1 } else { sum += 1 } }",
       }) {
    const std::string loop = printed("serial " + body);
    EXPECT_FALSE(is_loop(loop)) << loop;
    EXPECT_EQ(loop, printed("unroll " + body));
  }
  const std::string nested = printed("serial j in 0 .. 8 { serial i in 0 .. 4 { sum += X[b, 16 * j + i] } }");
  EXPECT_FALSE(is_loop(nested)) << nested;
  EXPECT_NE(nested.find("serial j in 0 .. 8"), nested.npos) << nested;
}

TEST(NeighbourLoops, OthersStayLoops) {
  for (const std::string body : {
           "serial i in 0 .. 4 { sum += X[b, 4 * i] }",                     // not beside each other
           "serial i in 0 .. m { sum += X[b, i] }",                         // as long as the launch says
           "serial i in 0 .. 200 { sum += X[b, i] }",                       // too long
           "serial i in 0 .. 4 { s[l * 3 + w * 128 + i] = X[b, at + i] }",  // another thread's, later
           "serial i in 0 .. 4 { if l == 0 { s[w + i] = X[b, at + i] } }",
           "serial i in 0 .. 4 { s[at + i] = s[at + 1] }",
           "serial i in 0 .. 4 { s[(at + i) % 512] = X[b, at + i] }",
           "serial i in 0 .. 4 { r[t, i] = X[b, at + i] + v[i, 0] }",
           "serial i in 0 .. 4 { s[at + i] = 1 s[508 - at + i] = 2 }",
           "serial i in 0 .. 4 { s[at + i + I[b]] = X[b, at + i] }",
           "var q = 0 serial i in 0 .. 4 { s[at + i + q] = X[b, at + i] q += 1 }",
           "serial i in 0 .. 4 { if w < 4 { s[at + i] = shuffle_xor(sum, 1) } }",
           "serial i in 0 .. 4 { sum += X[b, at + i] barrier }",
           "serial i in 0 .. 4 { assert X[b, at + i] > 0, \"above zero\" }",
           "serial i in 0 .. 4 { let old = atomic_add(Y[b, at + i], 1) sum += old }",
       }) {
    const std::string loop = printed(body);
    EXPECT_TRUE(is_loop(loop)) << body << "\n" << loop;
  }
}

}  // namespace
}  // namespace tilegen::ir
