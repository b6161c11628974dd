// Blocks of a multiprocessor that a kernel's registers should allow for.
#include "schedule/grid/occupancy_plan.h"

#include "plan_support.h"

namespace tilegen::schedule {
namespace {

std::string rows(int columns, const std::string& more = "") {
  const std::string n = std::to_string(columns);
  return "tl 1 program p\ndim m\ntensor X: f32[m, " + n + "] readonly\ntensor Y: f32[m, " + n +
         "]\nkernel k grid (by: m) threads 128 {\n alloc t: fragment f32[1, " + n +
         "]\n copy X[by :+ 1, 0 :+ " + n + "] -> t\n" + more + " copy t -> Y[by :+ 1, 0 :+ " + n + "]\n}\n";
}

int64_t blocks(const std::string& text, const char* target, const plan::Schedule* given = nullptr) {
  auto p = program_from(text);
  EXPECT_TRUE(p);
  auto s = plan_for(*p, target, given);
  EXPECT_TRUE(s) << s.error().to_text();
  return s && s->kernels[0].launch ? s->kernels[0].launch->min_blocks : 0;
}

TEST(OccupancyPlan, FewValuesLeaveRoomForBlocks) {
  EXPECT_EQ(blocks(rows(128), "sm_80"), 65536 / (128 * 64));
  EXPECT_EQ(blocks(rows(128 * 40), "sm_80"), 65536 / (128 * 64)) << "40 registers, and 24 besides";
  EXPECT_EQ(blocks(rows(128 * 44), "sm_80"), 1) << "enough to do at once";
  EXPECT_EQ(blocks(rows(128), "host"), 0);
}

// Of waves of 64 lanes: loads under way take registers, and shared memory has room for so many blocks only.
TEST(OccupancyPlan, CopiesUnderWayAndSharedMemoryCount) {
  const auto tile = [](int rows) {
    const std::string n = std::to_string(rows);
    return "tl 1 program p\ndim m\ntensor X: f32[m, 64] readonly\ntensor Y: f32[m, 64]\nkernel k grid (by: "
           "m) "
           "threads 64 {\n alloc s: shared f32[" +
           n + ", 64]\n alloc t: fragment f32[" + n + ", 64]\n copy X[by :+ " + n +
           ", 0 :+ 64] -> s\n parallel i, j in " + n +
           ", 64 {\n t[i, j] = s[i, 63 - j]\n }\n copy t -> Y[by :+ " + n + ", 0 :+ 64]\n}\n";
  };
  EXPECT_EQ(blocks(tile(32), "gfx942"), 8) << "8 KiB of 64 a block";
  EXPECT_EQ(blocks(tile(8), "gfx942"), 32) << "as many waves as there may be";
  EXPECT_EQ(blocks(rows(128), "gfx942"), 2048 * 64 / (128 * 64));
}

TEST(OccupancyPlan, TheGivenIsTaken) {
  plan::Schedule given;
  given.kernels = {{.kernel = "k"}};
  given.kernels[0].launch = plan::LaunchPlan{.min_blocks = 3};
  EXPECT_EQ(blocks(rows(128), "sm_80", &given), 3);
}

}  // namespace
}  // namespace tilegen::schedule
