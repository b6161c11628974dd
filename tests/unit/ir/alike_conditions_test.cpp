// Conditions of blocks of threads that are one word or several: what is the same for the block stands around
// what the threads' numbers say, however they are put together.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ir/text.h"

namespace tilegen::ir {
namespace {

// The program with `body` inside of the ifs of `opens`; or why there is none.
std::string printed(const std::string& opens, const std::string& body) {
  std::string ends;
  const auto braces = [&](char c) { return std::count(opens.begin(), opens.end(), c); };
  for (auto open = braces('{') - braces('}'); open > 0; --open) ends += " }";
  const auto p = parse_program(
      "tl 1 program p\ndim m\nscalar f: f32\ntensor X: f32[m] readonly\ntensor Y: f32[m]\n"
      "kernel k grid (g: ceildiv(m, 192)) threads 192 {\n  alloc s: shared f32[64]\n"
      "  alloc full: shared u64[1] {arrivals = 64}\n  threads w, l in 6, 32 {\n"
      "    var r = X[g * 192 + w * 32 + l]\n    let big = m > 200\n    let some = w > 3\n    " +
          opens + " " + body + ends + "\n    Y[g * 192 + w * 32 + l] = r\n  }\n}\n",
      "test.tl", Limits{});
  return p ? print_program(*p) : p.error().diagnostics[0].message;
}

TEST(AlikeConditions, TogetherAreWhatTheyAreOneInTheOther) {
  const char* const kBodies[] = {"s[(w - 4) * 32 + l] = r mbarrier_arrive full[0]", "barrier r += 1",
                                 "r += shuffle_xor(r, 1) s[(w - 4) * 32 + l] = r",
                                 "serial t in 0 .. m { r += shuffle_xor(r, 2) }"};
  const char* const kSpellings[] = {"if m > 200 and w > 3 {",
                                    "if w > 3 and m > 200 {",
                                    "if big and some {",
                                    "let both = some and big if both {",
                                    "if not (m <= 200) and w > 3 {",
                                    "if not (m <= 200 or w <= 3) {",
                                    "if m <= 200 or w <= 3 { } else {",
                                    "if not not (3 < w) and 200 < m {",
                                    "if select(m > 200, w > 3, false) {",
                                    "if not select(w > 3, m <= 200, true) {",
                                    "if some { if big {"};
  for (const std::string body : kBodies) {
    const std::string nested = printed("if m > 200 { if w > 3 {", body);
    EXPECT_NE(nested.find("\n  if 200 < m {\n"), nested.npos) << nested;
    for (const std::string spelling : kSpellings) EXPECT_EQ(printed(spelling, body), nested) << spelling;
  }
}

TEST(AlikeConditions, OfMoreThanTwoParts) {
  const std::string body = "r += shuffle_xor(r, 1)";
  EXPECT_EQ(printed("if m > 200 and w > 3 and g < 2 {", body),
            printed("if m > 200 and g < 2 { if w > 3 {", body));
  EXPECT_EQ(printed("if w > 3 and m > 200 and w < 5 {", body),
            printed("if m > 200 { if w > 3 and w < 5 {", body));
  // NaN is neither above nor below: its opposite is no other comparison.
  EXPECT_EQ(printed("if w > 3 and not (f < 2) {", body), printed("if not (f < 2) { if w > 3 {", body));
  EXPECT_NE(printed("if w > 3 and not (f < 2) {", body), printed("if f >= 2 and w > 3 {", body));
}

TEST(AlikeConditions, WhatOneLaneSeesIsRefusedInAnyOrder) {
  for (const std::string spelling :
       {"if m > 200 and r > 0 {", "if r > 0 and m > 200 {", "if m > 200 { if r > 0 {"})
    EXPECT_NE(printed(spelling, "r += shuffle_xor(r, 1)").find("may go different ways"), std::string::npos)
        << spelling;
  for (const std::string spelling : {"if m > 200 and r > 0 {", "if m > 200 { if r > 0 {"})
    EXPECT_NE(printed(spelling, "mbarrier_arrive full[0]").find("does not say by the threads' numbers"),
              std::string::npos)
        << spelling;
}

}  // namespace
}  // namespace tilegen::ir
