// Which target's code a device runs.
#include "runtime/devices.h"

#include <gtest/gtest.h>

namespace tilegen::runtime {
namespace {

DeviceInfo cuda_device(int capability, bool tensor_maps) {
  DeviceInfo d;
  d.kind = DeviceKind::cuda;
  d.code = target::CodeFormat::ptx;
  d.capability = capability;
  d.tensor_maps = tensor_maps;
  return d;
}

TEST(Devices, TheBestTargetIsTheNewestThatRuns) {
  const struct {
    int capability;
    const char* best;
  } kRows[] = {{75, ""},      {80, "sm_80"},  {86, "sm_86"},  {87, "sm_87"}, {88, "sm_87"},
               {89, "sm_89"}, {90, "sm_90a"}, {100, "sm_90"}, {120, "sm_90"}};
  for (const auto& row : kRows) EXPECT_EQ(best_target_name(cuda_device(row.capability, true)), row.best);
  EXPECT_EQ(best_target_name(cuda_device(90, false)), "sm_90");
}

TEST(Devices, CodeRunsOnLaterGenerationsUnlessItIsOfOne) {
  const auto runs = [](int capability, const char* name) {
    return can_run(cuda_device(capability, true), *target::find_target(name));
  };
  EXPECT_TRUE(runs(80, "sm_80") && runs(86, "sm_80") && runs(100, "sm_90"));
  EXPECT_FALSE(runs(80, "sm_86") || runs(89, "sm_90"));
  EXPECT_TRUE(runs(90, "sm_90a"));
  EXPECT_FALSE(runs(100, "sm_90a") || runs(89, "sm_90a"));
  EXPECT_FALSE(runs(90, "x86-64-v3"));
  EXPECT_TRUE(can_run(DeviceInfo(), *target::find_target("x86-64-v3")));
  EXPECT_FALSE(can_run(DeviceInfo(), *target::find_target("sm_80")));
}

}  // namespace
}  // namespace tilegen::runtime
