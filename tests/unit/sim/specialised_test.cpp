// Warp-specialised kernels: what they compute under every schedule.
#include "specialised_gemm.h"

namespace tilegen::sim::test {
namespace {

constexpr GemmTiles kTiles[] = {
    {64, 32, 64, true, 3}, {128, 64, 32, false, 4}, {64, 128, 64, false, 2}, {64, 32, 16, true, 2}};

TEST(SimSpecialised, ComputesProductsOfAllLengths) {
  for (const GemmTiles& t : kTiles)
    for (int64_t steps : {0, 1, 2, 3, 7})
      for_each_schedule([&](const SimOptions& options) {
        // Five tiles, the last ones partly outside; K ends within a tile.
        const SpecialisedGemm g(t);
        SpecialisedData data(t, 4 * t.m + 24, t.n, std::max<int64_t>(0, steps * t.k - 8));
        EXPECT_EQ(texts(run(g, data, options)), "")
            << t.m << "x" << t.n << "x" << t.k << ", " << steps << " steps";
        EXPECT_EQ(data.c, data.expected) << t.m << "x" << t.n << "x" << t.k << ", " << steps << " steps";
      });
}

TEST(SimSpecialised, ComputesWithTheTilesOfALargeKernel) {
  const GemmTiles t{128, 256, 64, false, 4};
  const SpecialisedGemm g(t);
  SpecialisedData data(t, 2 * t.m - 40, t.n + 64, 3 * t.k);
  EXPECT_EQ(texts(run(g, data)), "");
  EXPECT_EQ(data.c, data.expected);
}

TEST(SimSpecialised, CanBeLaunchedWithAnyNumberOfBlocks) {
  const GemmTiles t{64, 32, 64, true, 3};
  for (int64_t blocks : {1, 2, 4, 5, 100}) {
    const SpecialisedGemm g(t);
    SpecialisedData data(t, 4 * t.m + 24, t.n, 3 * t.k);
    SimOptions options;
    options.resident_blocks = blocks;
    EXPECT_EQ(texts(run(g, data, options)), "");
    EXPECT_EQ(data.c, data.expected);
  }
}

}  // namespace
}  // namespace tilegen::sim::test
