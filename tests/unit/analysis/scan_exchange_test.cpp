// The levels of a scan cover the axis in order: by lanes where shuffles reach, through scratch elsewhere.
#include "analysis/scan_exchange.h"

#include <gtest/gtest.h>

namespace tilegen::analysis {
namespace {

using layout::Fragment;

const target::Target& sm80() {
  static const target::Target t = *target::find_target("sm_80");
  return t;
}

Fragment rows(std::vector<int64_t> shape, int64_t threads, int64_t vector) {
  return Fragment::row_major_vectors(shape, threads, vector);
}

std::string levels(const Fragment& f, int axis, ir::DType type = ir::DType::f32) {
  std::string text;
  for (const ScanLevel& l : scan_exchange(f, axis, type, sm80()).levels)
    text += (text.empty() ? "" : " ") +
            std::string(l.way == ScanLevel::Way::registers ? "registers"
                        : l.way == ScanLevel::Way::lanes   ? "lanes"
                                                           : "scratch") +
            std::to_string(l.extent) + "x" + std::to_string(l.runs) + (l.last ? "!" : "");
  return text;
}

TEST(ScanExchange, LevelsFollowTheDigitsOfTheAxis) {
  EXPECT_EQ(levels(rows({4, 256}, 128, 4), 1), "registers4x8 lanes32x2 scratch2x2!");
  EXPECT_EQ(levels(rows({8, 128}, 128, 4), 1), "registers4x8 lanes32x2!");
  EXPECT_EQ(levels(rows({8, 128}, 128, 4), 0), "scratch4x8 registers2x8!");
  EXPECT_EQ(levels(rows({1024}, 32, 4), 0), "registers4x32 lanes32x8 registers8x8!");
  EXPECT_EQ(levels(rows({64, 1}, 32, 1), 1), "");
  EXPECT_EQ(levels(rows({64, 1}, 32, 1), -1), "");
}

TEST(ScanExchange, WideTypesMeetInScratch) {
  EXPECT_EQ(levels(rows({8, 64}, 128, 2), 1, ir::DType::f64), "registers2x4 scratch32x2!");
  const ScanExchange x = scan_exchange(rows({8, 64}, 128, 2), 1, ir::DType::f64, sm80());
  EXPECT_EQ(x.scratch_elements, 2 * 128);
}

// However many runs a thread has, so many go through scratch at once that it stays small.
TEST(ScanExchange, ScratchIsBounded) {
  const Fragment f = rows({256, 128}, 256, 4);
  const ScanExchange x = scan_exchange(f, 0, ir::DType::f32, sm80());
  ASSERT_FALSE(x.levels.empty());
  EXPECT_EQ(x.levels[0].runs, 128);
  EXPECT_EQ(x.scratch_elements * 4, 8192);
}

TEST(ScanExchange, ScratchCostsMoreThanLanesAndTheyMoreThanRegisters) {
  const auto cost = [](const Fragment& f, int axis) { return scan_cost(f, axis, ir::DType::f32, sm80()); };
  EXPECT_LT(cost(rows({16, 128}, 128, 4), 1), cost(rows({8, 256}, 128, 4), 1));
  EXPECT_LT(cost(rows({16, 128}, 128, 1), 0), cost(rows({16, 128}, 128, 4), 0));
}

}  // namespace
}  // namespace tilegen::analysis
