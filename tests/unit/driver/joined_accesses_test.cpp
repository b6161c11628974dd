// Elements beside each other that a thread accesses one by one: wide accesses in the machine code where they
// are aligned, whatever the spelling, and single ones where something stands between them.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "ir/text.h"

namespace tilegen::driver {
namespace {

std::string program(const std::string& params, const std::string& body) {
  return "tl 1 program p\ndim m\n" + params +
         "kernel k grid (b: m) threads 128 {\n  alloc s: shared f32[512]\n  threads t in 128 {\n" + body +
         "  }\n}\n";
}
const std::string kTensors = "tensor X: f32[m, 512] readonly\ntensor Y: f32[m, 512]\n";

std::string code_of(const std::string& text, const char* target) {
  auto p = ir::parse_program(text, "test.tl", Limits{});
  EXPECT_TRUE(p) << p.error().to_text();
  if (!p) return "";
  CompileOptions options;
  options.verify = options.keep_assembly = true;
  const auto a =
      compile(std::make_shared<const ir::Program>(std::move(*p)), *target::find_target(target), options);
  EXPECT_TRUE(a) << a.error().to_text() << text;
  return a ? (*a)->assembly : "";
}

int count_of(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(JoinedAccesses, AreWideInEverySpelling) {
  const char* const bodies[] = {
      "unroll i in 0 .. 4 { Y[b, 4 * t + i] = X[b, 4 * t + i] * 2.0 }\n",
      "serial i in 0 .. 4 { Y[b, 4 * t + i] = X[b, 4 * t + i] * 2.0 }\n",
      "serial i in 4 * 0 .. 4 { let at = 4 * t + 3 - i Y[b, at] = 2.0 * X[b, at] }\n",
      "unroll i in 0 .. 4 { Y[b, (3 - i) + t * 4] = X[b, (t * 2 + (3 - i) // 2) * 2 + (3 - i) % 2] * 2.0 }\n",
      "let a = X[b, 4 * t]\nlet c = X[b, 4 * t + 1]\nlet d = X[b, 4 * t + 2]\nlet e = X[b, 4 * t + 3]\n"
      "Y[b, 4 * t] = a + e\nY[b, 4 * t + 1] = c + d\nY[b, 4 * t + 2] = d\nY[b, 4 * t + 3] = e\n",
  };
  for (const char* body : bodies) {
    for (const char* target : {"sm_80", "sm_90a"}) {
      const std::string code = code_of(program(kTensors, body), target);
      EXPECT_EQ(count_of(code, "ld.global."), 1) << target << body << code;
      EXPECT_EQ(count_of(code, "ld.global.v4."), 1) << target << body;
      EXPECT_EQ(count_of(code, "st.global."), 1) << target << body;
      EXPECT_EQ(count_of(code, "st.global.v4."), 1) << target << body;
    }
    const std::string code = code_of(program(kTensors, body), "gfx942");
    EXPECT_EQ(count_of(code, "global_load_dwordx4"), 1) << body << code;
    EXPECT_EQ(count_of(code, "global_store_dwordx4"), 1) << body << code;
  }
}

TEST(JoinedAccesses, OfSharedTiles) {
  const std::string code = code_of(program(kTensors,
                                           "unroll i in 0 .. 4 { s[4 * t + i] = X[b, 4 * t + i] }\nbarrier\n"
                                           "unroll i in 0 .. 4 { Y[b, 4 * t + i] = s[508 - 4 * t + i] }\n"),
                                   "sm_80");
  EXPECT_EQ(count_of(code, "st.shared.v4."), 1) << code;
  EXPECT_EQ(count_of(code, "ld.shared.v4."), 1) << code;
  EXPECT_EQ(count_of(code, "ld.shared."), 1) << code;
}

// Eight of two bytes; the last ones of a row that is no multiple stay single.
TEST(JoinedAccesses, AsWideAsTheMachineMoves) {
  const std::string code =
      code_of(program("tensor X: f16[m, 1024] readonly\ntensor Y: f16[m, 1024]\n",
                      "unroll i in 0 .. 8 { Y[b, 8 * t + i] = X[b, 8 * t + i] + 1.0 }\n"),
              "sm_80");
  EXPECT_EQ(count_of(code, "ld.global.v4."), 1) << code;
  EXPECT_EQ(count_of(code, "st.global.v4."), 1) << code;
  const std::string three =
      code_of(program(kTensors, "unroll i in 0 .. 3 { Y[b, 4 * t + i] = X[b, 4 * t + i] * 2.0 }\n"), "sm_80");
  EXPECT_EQ(count_of(three, "ld.global.v2."), 1) << three;
  EXPECT_EQ(count_of(three, "st.global."), 2) << three;
}

// Bounds that hold for whole runs are one predicate; dims are assumed to be multiples.
TEST(JoinedAccesses, UnderBounds) {
  const std::string text =
      "tl 1 program p\ndim m\ndim n\ntensor X: f32[m, n] readonly\ntensor Y: f32[m, n]\n"
      "kernel k grid (b: m, c: ceildiv(n, 512)) threads 128 {\n  threads t in 128 {\n"
      "    unroll i in 0 .. 4 { Y[b, c * 512 + 4 * t + i] = X[b, c * 512 + 4 * t + i] * 2.0 }\n  }\n}\n";
  const std::string code = code_of(text, "sm_80");
  EXPECT_EQ(count_of(code, "ld.global.v4."), 1) << code;
  EXPECT_EQ(count_of(code, "st.global."), 1) << code;
}

TEST(JoinedAccesses, NotAcrossWhatChangesThem) {
  // an element of the run is written before it is read
  const std::string written =
      code_of(program("tensor Y: f32[m, 512]\n",
                      "Y[b, 4 * t + 3] = Y[b, 4 * t]\nY[b, 4 * t + 2] = Y[b, 4 * t + 3] + Y[b, 4 * t + 1]\n"
                      "Y[b, 4 * t + 1] = Y[b, 4 * t + 2]\n"),
              "sm_80");
  EXPECT_EQ(count_of(written, "ld.global.v4."), 0) << written;
  // nobody knows what the base is aligned to, or the run begins anywhere
  const std::string anywhere = code_of(
      program(kTensors, "unroll i in 0 .. 4 { Y[b, (4 * t + i + 1) % 512] = X[b, (3 * t + i) % 512] }\n"),
      "sm_80");
  EXPECT_EQ(count_of(anywhere, "global.v4."), 0) << anywhere;
  // under a condition of each element
  const std::string conditional = code_of(
      program(kTensors, "unroll i in 0 .. 4 { if X[b, t] > 0 { Y[b, 4 * t + i] = 1.0 } }\n"), "sm_80");
  EXPECT_EQ(count_of(conditional, "st.global.v4."), 0) << conditional;
}

}  // namespace
}  // namespace tilegen::driver
