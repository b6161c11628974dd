// The order of tiles follows from what blocks share, not from how the grid is written.
#include "plan_support.h"

namespace tilegen::schedule {
namespace {

// A loop's tiles of A, B and C at the places given, in a grid of `rows` and `columns`.
std::string program(const std::string& grid, const std::string& a, const std::string& b,
                    const std::string& begin = "0") {
  return "tl 1 program p\n"
         "dim m divisible 64\ndim n divisible 64\ndim k divisible 64\n"
         "tensor A: f32[m, k] readonly\ntensor B: f32[n, k] readonly\ntensor C: f32[m, n]\n"
         "kernel k0 grid (" +
         grid +
         ") threads 128 {\n"
         "  alloc a: fragment f32[64, 64]\n  alloc b: fragment f32[64, 64]\n  alloc c: fragment f32[64, 64]\n"
         "  fill c, 0.0f32\n"
         "  serial s in " +
         begin +
         " :+ 4 {\n"
         "    copy " +
         a + " -> a\n    copy " + b +
         " -> b\n"
         "    parallel i, j in 64, 64 { c[i, j] = c[i, j] + a[i, j] * b[i, j] }\n"
         "  }\n"
         "  copy c -> C[y * 64 :+ 64, x * 64 :+ 64]\n"
         "}\n";
}

plan::RasterPlan raster_of(const std::string& text, const char* target = "sm_90a") {
  const auto p = program_from(text);
  EXPECT_TRUE(p) << text;
  const auto plan = plan_for(*p, target);
  EXPECT_TRUE(plan) << text;
  return *plan->kernels[0].raster;
}

constexpr const char* kRowsFirst = "y: m // 64, x: n // 64";
constexpr const char* kColumnsFirst = "x: n // 64, y: m // 64";
const std::string kByRow = "A[y * 64 :+ 64, s * 64 :+ 64]";
const std::string kByColumn = "B[x * 64 :+ 64, s * 64 :+ 64]";

TEST(Raster, GoesDownTheColumnsWhereOnlyTheseAreShared) {
  EXPECT_EQ(raster_of(program(kRowsFirst, kByColumn, kByColumn)).order, "column_major");
  EXPECT_EQ(raster_of(program(kColumnsFirst, kByColumn, kByColumn)).order, "row_major");
  EXPECT_EQ(raster_of(program(kRowsFirst, kByRow, kByRow)).order, "row_major");
  EXPECT_EQ(raster_of(program(kColumnsFirst, kByRow, kByRow)).order, "column_major");
}

TEST(Raster, GroupsWhereBothAreShared) {
  EXPECT_EQ(raster_of(program(kRowsFirst, kByRow, kByColumn)).order, "grouped");
  EXPECT_EQ(raster_of(program(kColumnsFirst, kByRow, kByColumn)).order, "grouped");
}

// A second cache of each die: blocks go to the dies in turn, and those of one are neighbours.
TEST(Raster, GoesByDiesWhereTheDeviceHasSome) {
  const plan::RasterPlan many = raster_of(program(kRowsFirst, kByRow, kByColumn), "gfx942");
  EXPECT_EQ(many.order, "by_die");
  EXPECT_EQ(many.dies, 8);
  EXPECT_EQ(many.group, 4) << "of the 38 compute units of a die";
  const plan::RasterPlan one = raster_of(program(kRowsFirst, kByRow, kByColumn), "gfx90a");
  EXPECT_EQ(one.order, "grouped");
  EXPECT_EQ(one.dies, 0);
  EXPECT_EQ(raster_of(program(kRowsFirst, kByRow, kByRow), "gfx942").order, "row_major");
}

TEST(Raster, AFewSharedBytesDoNotTakeBlocksFromTheOrderOfMemory) {
  EXPECT_EQ(raster_of(program(kRowsFirst, kByColumn, "C[y * 64 :+ 64, x * 64 :+ 64]")).order, "row_major");
}

TEST(Raster, LoopsThatBeginElsewhereReadElsewhere) {
  EXPECT_EQ(raster_of(program(kRowsFirst, kByColumn, kByColumn, "y")).order, "row_major");
  EXPECT_EQ(raster_of(program(kRowsFirst, kByColumn, kByColumn, "x * 4")).order, "column_major");
}

}  // namespace
}  // namespace tilegen::schedule
