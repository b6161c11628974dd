// Registers of producing and computing threads against what a multiprocessor has.
#include "target/target.h"

#include <gtest/gtest.h>

namespace tilegen::target {
namespace {

TEST(RoleRegisters, OneWarpFirstThenAWarpgroupThatGivesRegistersAway) {
  const auto list = role_registers(*find_target("sm_90a"), 256);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].producer_threads, 32);
  EXPECT_EQ(list[0].at_most, 168);
  EXPECT_EQ(list[1].producer, 40);
  EXPECT_EQ(list[1].consumer, 232);
  EXPECT_EQ(list[2].producer, 24);
  EXPECT_EQ(list[2].consumer, 240);
}

TEST(RoleRegisters, TheSumIsNeverMoreThanTheBlockIsLaunchedWith) {
  const Target t = *find_target("sm_90a");
  for (int64_t threads = 128; threads <= 1024; threads += 128)
    for (const RoleRegisters& r : role_registers(t, threads)) {
      const int64_t all = threads + r.producer_threads;
      EXPECT_LE(all, t.max_threads);
      if (r.consumer == 0) {
        EXPECT_LE(r.at_most * all, 65536);
        continue;
      }
      const int64_t entry = 65536 / all / 8 * 8;
      EXPECT_LE(r.producer * 128 + r.consumer * threads, entry * all) << threads;
      EXPECT_EQ(r.consumer % 8, 0);
      EXPECT_LE(r.consumer, 255);
      EXPECT_EQ(r.at_most, r.consumer);
    }
  EXPECT_TRUE(role_registers(t, 1024).empty());
  EXPECT_EQ(most_consumer_registers(t, 128), 255);
  EXPECT_EQ(most_consumer_registers(t, 384), 160);
}

}  // namespace
}  // namespace tilegen::target
