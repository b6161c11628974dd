// Blocks that registers have room for, by where warps keep them.
#include "target/resident_blocks.h"

#include <gtest/gtest.h>

#include "target/registry.h"

namespace tilegen::target {
namespace {

// cudaOccupancyMaxActiveBlocksPerMultiprocessor on an H200 says the same.
TEST(ResidentBlocks, WarpsKeepTheirRegistersInOneUnit) {
  const Target t = *find_target("sm_90a");
  EXPECT_EQ(blocks_by_registers(t, 128, 128), 4);
  EXPECT_EQ(blocks_by_registers(t, 96, 288), 2);
  // 18 warps of 104 registers have 59904 of 65536 in all, and five of one unit 16640 of 16384.
  EXPECT_EQ(blocks_by_registers(t, 104, 288), 1);
  EXPECT_EQ(blocks_by_registers(t, 97, 288), 1) << "registers are given out by eight";
  EXPECT_EQ(blocks_by_registers(t, 168, 160), 2);
  EXPECT_EQ(blocks_by_registers(t, 176, 160), 1);
  EXPECT_EQ(blocks_by_registers(t, 255, 512), 0) << "no room for one";
}

TEST(ResidentBlocks, WavesOfASimd) {
  const Target t = *find_target("gfx942");
  EXPECT_EQ(blocks_by_registers(t, 128, 256), 4);
  EXPECT_EQ(blocks_by_registers(t, 256, 256), 2);
  EXPECT_EQ(blocks_by_registers(t, 256, 320), 1) << "two waves of each of four units";
}

}  // namespace
}  // namespace tilegen::target
