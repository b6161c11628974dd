// Few configurations for many sizes: which, for what, and what is refused.
#include "tune/specialise.h"

#include <cmath>

#include "support/diag_codes.h"
#include "tune_support.h"

namespace tilegen::tune {
namespace {

// Rows of blocks: few rows want small tiles, many large ones.
constexpr char kProduct[] =
    "tl 1 program product\nparam BM in {16, 64, 128, 4096}\nparam BN in {64, 128}\ndim m\n"
    "tensor A: f16[m, 4096] readonly\ntensor B: f16[4096, 4096] readonly\ntensor C: f16[m, 4096]\n"
    "kernel k grid (by: ceildiv(m, BM), bx: 4096 // BN) {\n"
    "  alloc a: shared f16[BM, 64]\n  alloc b: shared f16[BN, 64]\n  alloc acc: fragment f32[BM, BN]\n"
    "  fill acc, 0.0f32\n  pipelined ko in 0 .. 64 {\n"
    "    copy A[by * BM :+ BM, ko * 64 :+ 64] -> a\n    copy B[bx * BN :+ BN, ko * 64 :+ 64] -> b\n"
    "    gemm a, b -> acc {transpose_b}\n  }\n"
    "  copy acc -> C[by * BM :+ BM, bx * BN :+ BN]\n}\n";

Expected<Specialising> specialised(const std::string& text, const char* target, SpecialiseOptions how) {
  const auto program = std::make_shared<const ir::Program>(program_of(text));
  return specialise(program, bind_of(text), schedule::target_named(target), {}, how);
}

size_t part_of(const Specialising& s, int64_t size) {
  size_t step = 0;
  while (step + 1 < s.axes[0].upto.size() && s.axes[0].upto[step] < size) ++step;
  return s.choice[step];
}

TEST(Specialise, FewRowsHaveSmallTilesAndManyLargeOnes) {
  for (const char* target : {"sm_80", "sm_90a"}) {
    const auto s = specialised(kProduct, target, {.ranges = {{"m", 1, 8192}}});
    ASSERT_TRUE(s) << s.error().to_text();
    ASSERT_EQ(s->axes.size(), 1u);
    EXPECT_LE(s->forms.size(), kUsualSpecialisations);
    EXPECT_GE(s->forms.size(), 2u);
    EXPECT_LT(s->loss, 0.1);
    const ChosenForm& few = s->forms[part_of(*s, 1)];
    const ChosenForm& many = s->forms[part_of(*s, 8192)];
    EXPECT_LT(few.values[0].value, many.values[0].value) << target;
    EXPECT_GE(many.values[0].value, 64) << target;
    EXPECT_LT(few.sizes.at("m"), 1024);
  }
}

TEST(Specialise, MoreOfThemLoseLess) {
  double before = INFINITY;
  for (size_t most : {1, 2, 4, 8}) {
    const auto s = specialised(kProduct, "sm_90a", {.ranges = {{"m", 1, 8192}}, .most = most});
    ASSERT_TRUE(s);
    EXPECT_LE(s->forms.size(), most);
    EXPECT_LE(s->loss, before);
    before = s->loss;
  }
}

TEST(Specialise, IsTheSameForAnyNumberOfThreads) {
  const auto listed = [](const Specialising& s) {
    std::string text;
    for (size_t i = 0; i < s.choice.size(); ++i)
      text += std::to_string(s.axes[0].upto[i]) + ": " + values_text(s.forms[s.choice[i]].values) + "\n";
    return text;
  };
  const auto one = specialised(kProduct, "sm_80", {.ranges = {{"m", 1, 512}}, .threads = 1});
  const auto many = specialised(kProduct, "sm_80", {.ranges = {{"m", 1, 512}}, .threads = 7});
  ASSERT_TRUE(one && many);
  EXPECT_EQ(listed(*one), listed(*many));
}

// A plan alone: a long sum is shared by blocks while the grid is small.
TEST(Specialise, PlansCountWhereValuesStay) {
  std::string text = kProduct;
  text.replace(text.find("{16, 64, 128, 4096}"), 19, "{64}");
  text.replace(text.find("{64, 128}"), 9, "{64}");
  const auto s =
      specialised(text, "sm_90a", {.ranges = {{"m", 64, 8192}}, .most = 8, .choose_values = false});
  ASSERT_TRUE(s) << s.error().to_text();
  ASSERT_GE(s->forms.size(), 2u);
  for (const ChosenForm& f : s->forms) EXPECT_TRUE(f.values.empty());
}

TEST(Specialise, MeasuredTimesDecide) {
  MeasureOptions measure;
  measure.count = 100;
  measure.rounds = 1;
  // Against the model: tiles of 128 rows are the fastest of few rows, those of 16 of many.
  measure.sample = [](const Configuration& c, size_t, size_t) -> Expected<double> {
    return c.values[0].value == 16 ? 10.0 : 20.0;
  };
  const auto s = specialised(kProduct, "sm_90a", {.ranges = {{"m", 1, 8192}}, .measure = &measure});
  ASSERT_TRUE(s) << s.error().to_text();
  for (const ChosenForm& form : s->forms) EXPECT_EQ(form.values[0].value, 16);
}

TEST(Specialise, HostsHaveOneUnlessMeasured) {
  const auto one = specialised(kRows, "host", {.ranges = {{"m", 1, 4096}}, .choose_values = false});
  ASSERT_TRUE(one) << one.error().to_text();
  EXPECT_EQ(one->forms.size(), 1u);
  const auto unknown = specialised(kRows, "host", {.ranges = {{"m", 1, 4096}}});
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().to_text().find("no estimates"), std::string::npos) << unknown.error().to_text();
  MeasureOptions measure;
  size_t calls = 0;
  measure.rounds = 1;
  measure.sample = [&](const Configuration& c, size_t, size_t) -> Expected<double> {
    ++calls;
    return c.values[0].value == 8 && c.values[1].value == 64 ? 1.0 : 2.0;
  };
  const auto measured = specialised(kRows, "host", {.ranges = {{"m", 1, 16}}, .measure = &measure});
  ASSERT_TRUE(measured) << measured.error().to_text();
  ASSERT_EQ(measured->forms.size(), 1u);
  EXPECT_EQ(values_text(measured->forms[0].values), "ROWS 8, COLS 64");
  EXPECT_GT(calls, 6u);
}

TEST(Specialise, RefusesWhatNoConfigurationTakes) {
  std::string text = kProduct;
  text.replace(text.find("{16, 64, 128, 4096}"), 19, "{4096}");
  const auto s = specialised(text, "sm_80", {.ranges = {{"m", 1, 64}}});
  ASSERT_FALSE(s);
  EXPECT_NE(s.error().to_text().find("none can be planned"), std::string::npos) << s.error().to_text();
}

}  // namespace
}  // namespace tilegen::tune
