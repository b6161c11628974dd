// Which element-wise work warps take in parts, by what they know of a condition on indices.
#include "plan_support.h"

namespace tilegen::schedule {
namespace {

// Weights of a product's left operand, in registers.
Expected<plan::Schedule> plan_of(const std::string& weight, const plan::Schedule* given = nullptr) {
  auto p = program_from(
      "tl 1 program p\ndim n >= 1\ntensor A: f32[n, 64] readonly\ntensor X: f16[64, 64] readonly\n"
      "tensor O: f32[n, 64, 64]\nkernel k grid (b: n) threads 128 {\n alloc w: fragment f16[64, 64]\n"
      " alloc v: fragment f16[64, 64]\n alloc a: shared f32[64]\n alloc x: shared f16[64, 64]\n"
      " alloc o: fragment f32[64, 64]\n copy A[b :+ 1, 0 :+ 64] -> a\n copy X -> x\n copy X -> v\n"
      " parallel i, j in 64, 64 { w[i, j] = " +
      weight + " }\n gemm w, x -> o {clear}\n copy o -> O[b :+ 1, 0 :+ 64, 0 :+ 64]\n}\n");
  EXPECT_TRUE(p);
  return plan_for(*p, "sm_90a", given);
}

int64_t parts_of(const std::string& weight) {
  auto s = plan_of(weight);
  EXPECT_TRUE(s) << s.error().to_text();
  return s ? plan::find_op(s->kernels[0], "k/i.j")->mask_parts : -1;
}

const std::string kHeavy = "v[i, j] * cast(f16, exp2(a[i] - a[j]) * exp2(a[j] - a[i] * 2.0f32) * exp2(a[j]))";
std::string masked(const std::string& condition) {
  return "select(" + condition + ", " + kHeavy + ", 0.0f16)";
}

TEST(MaskParts, WhateverTheSpelling) {
  for (const std::string condition :
       {"j <= i", "i >= j", "not (i < j)", "j < i + 1", "j - i <= 0", "0 <= i - j", "j <= i and 0 <= j"})
    EXPECT_EQ(parts_of(masked(condition)), 4) << condition;
  EXPECT_EQ(parts_of("select(i < j, 0.0f16, " + kHeavy + ")"), 4);
  EXPECT_EQ(parts_of("cast(f16, select(j <= i, cast(f32, " + kHeavy + "), 0.0f32))"), 4);
  EXPECT_EQ(parts_of(masked("j <= i") + " + select(j == i, 1.0f16, 0.0f16)"), 4);
}

// The rows of a quarter are one warp's: it takes the diagonal or what lies below it.
TEST(MaskParts, BesideWhatAWarpKnowsOfItsRows) {
  const std::string below = "v[i, j] * cast(f16, a[j])";
  for (const std::string rows : {"i < 16", "not (16 <= i)", "0 < 16 - i", "i <= 15"})
    EXPECT_EQ(parts_of("select(" + rows + ", " + masked("j <= i") + ", " + below + ")"), 4) << rows;
  EXPECT_EQ(parts_of("select(i >= 16, " + below + ", " + masked("j <= i") + ")"), 4);
  EXPECT_EQ(parts_of("select(i < 16, v[i, j], " + below + ")"), 0) << "little work";
  EXPECT_EQ(parts_of("select(a[i] < 16.0f32, " + kHeavy + ", " + below + ")"), 0) << "known to no warp";
}

TEST(MaskParts, OnlyWhereTheySaveWork) {
  EXPECT_EQ(parts_of(kHeavy), 0) << "no mask";
  EXPECT_EQ(parts_of("select(j <= i, v[i, j], 0.0f16)"), 0) << "a mask alone";
  EXPECT_EQ(parts_of("select(j <= i, v[i, j] * cast(f16, exp2(a[i] - a[j])), 0.0f16)"), 0) << "little work";
  EXPECT_EQ(parts_of("select(j <= i, " + kHeavy + ", " + kHeavy + " * 2.0f16)"), 0) << "nothing is left out";
  EXPECT_EQ(parts_of(masked("j <= i + 60")), 0) << "most of it is seen";
  EXPECT_EQ(parts_of(masked("a[j] <= a[i]")), 0) << "no condition on indices";
  EXPECT_EQ(parts_of("select(" + kHeavy + " < v[i, j], v[i, j], " + kHeavy + ")"), 0) << "an extremum";
}

TEST(MaskParts, AsGiven) {
  const auto given = [](int64_t parts) {
    plan::Schedule s;
    s.kernels = {{.kernel = "k", .ops = {{.op = "k/i.j", .mask_parts = parts}}}};
    return s;
  };
  const plan::Schedule one = given(1), three = given(3);
  const auto whole = plan_of(masked("j <= i"), &one);
  ASSERT_TRUE(whole) << whole.error().to_text();
  EXPECT_EQ(plan::find_op(whole->kernels[0], "k/i.j")->mask_parts, 1);
  const auto refused = plan_of(masked("j <= i"), &three);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().to_text().find("a thread's points fall into 4 parts"), std::string::npos)
      << refused.error().to_text();
}

}  // namespace
}  // namespace tilegen::schedule
