// The sizes at which configurations are compared.
#include "tune/size_points.h"

#include <gtest/gtest.h>

#include "tune_support.h"

namespace tilegen::tune {
namespace {

ir::Program with_dims(const std::string& dims) {
  return program_of("tl 1 program p\n" + dims + "kernel k grid (b: 1) {\n}\n");
}

TEST(SizePoints, TwoToADoublingAndTheEnd) {
  const auto axes = size_axes(with_dims("dim m\n"), {{"m", 5, 100}});
  ASSERT_EQ(axes.size(), 1u);
  EXPECT_EQ(axes[0].name, "m");
  EXPECT_EQ(axes[0].param, 0u);
  EXPECT_EQ(axes[0].upto, (std::vector<int64_t>{6, 8, 12, 16, 24, 32, 48, 64, 96, 100}));
}

TEST(SizePoints, KeepToWhatFactsSay) {
  const auto axes = size_axes(with_dims("dim n\ndim m >= 32 <= 512 divisible 64\n"), {{"m", 1, 100000}});
  ASSERT_EQ(axes.size(), 1u);
  EXPECT_EQ(axes[0].param, 1u);
  EXPECT_EQ(axes[0].upto, (std::vector<int64_t>{64, 128, 192, 256, 384, 512}));
}

TEST(SizePoints, MiddlesLieInTheirSteps) {
  const ir::Program p = with_dims("dim m divisible 4\n");
  const auto axes = size_axes(p, {{"m", 8, 64}});
  EXPECT_EQ(axes[0].upto, (std::vector<int64_t>{8, 12, 16, 24, 32, 48, 64}));
  EXPECT_EQ(middle_axes(p, axes)[0].upto, (std::vector<int64_t>{8, 12, 16, 20, 28, 40, 56}));
}

TEST(SizePoints, OfTwoRangesAllPairsThinned) {
  const auto axes = size_axes(with_dims("dim m\ndim n\n"), {{"n", 1, 4096}, {"m", 1, 4096}});
  ASSERT_EQ(axes.size(), 2u);
  EXPECT_EQ(axes[0].name, "m");  // in launch order
  const auto points = size_points(axes, {{"k", 7}});
  EXPECT_LE(points.size(), kMaxPoints);
  EXPECT_GE(points.size(), kMaxPoints / 4);
  EXPECT_EQ(points.back(), (cost::Sizes{{"k", 7}, {"m", 4096}, {"n", 4096}}));
  EXPECT_EQ(points[1].at("m"), points[0].at("m"));
  EXPECT_LT(points[0].at("n"), points[1].at("n"));
}

}  // namespace
}  // namespace tilegen::tune
