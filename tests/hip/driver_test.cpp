// Finding the runtime and its devices: everything that may be missing is an error with a way out.
#include "fake_machine.h"

namespace tilegen::runtime::hip {
namespace {

class HipDriverTest : public FakeMachine {};

Checked load_error(const char* path = TILEGEN_FAKE_HIP_RUNTIME) {
  auto loaded = Driver::load(path);
  if (!loaded) return loaded.error();
  return Unit{};
}

TEST_F(HipDriverTest, DevicesAreDescribed) {
  fake().fake_set_devices(2);
  fake().fake_set_architecture(1, "gfx90a");
  const Driver& d = driver();
  EXPECT_EQ(d.version(), 6020);
  EXPECT_EQ(d.version_text(), "6.2");
  ASSERT_EQ(d.devices().size(), 2u);
  const Device& first = d.devices()[0];
  EXPECT_EQ(first.text(), "hip:0 (Fake MI300X)");
  EXPECT_EQ(first.architecture, "gfx942");
  EXPECT_EQ(first.features, "sramecc+:xnack-");
  EXPECT_EQ(first.warp, 64);
  EXPECT_EQ(first.multiprocessors, 304);
  EXPECT_EQ(first.shared_bytes, 64 << 10);
  EXPECT_EQ(first.max_grid_threads, 0xffffffff);
  EXPECT_TRUE(first.memory_pools);
  EXPECT_EQ(d.devices()[1].architecture, "gfx90a");
  EXPECT_EQ(d.devices()[1].features, "");
  EXPECT_EQ(d.devices()[1].memory_bytes, size_t{1} << 30);
  EXPECT_EQ(fake().fake_calls("hipSetDevice"), 0);  // looking changes nothing
}

TEST_F(HipDriverTest, NoLibrary) {
  expect_refusal(load_error("libamdhip64_that_is_not_there.so"), DiagCode::driver_absent,
                 "the HIP runtime cannot be loaded: libamdhip64_that_is_not_there.so", "install ROCm 6.0");
  EXPECT_EQ(load_error("libamdhip64_that_is_not_there.so").error().diagnostics[0].op, "hip");
}

// Of what ROCm installs none is here; the last one looked for is named.
TEST_F(HipDriverTest, NothingThatRocmInstalls) {
  expect_refusal(load_error(nullptr), DiagCode::driver_absent,
                 "the HIP runtime cannot be loaded: /opt/rocm/lib", "compile for 'host'");
}

TEST_F(HipDriverTest, AMissingFunctionIsNamed) {
  expect_refusal(load_error(TILEGEN_FAKE_HIP_INCOMPLETE), DiagCode::driver_absent,
                 "has no function hipModuleLoadDataEx", "update ROCm");
}

TEST_F(HipDriverTest, AnOldRuntimeSaysHowOld) {
  fake().fake_set_version(50'731'921);
  expect_refusal(load_error(), DiagCode::driver_absent, "the runtime is HIP 5.7, 6.0 or newer is needed",
                 "update ROCm");
  EXPECT_EQ(fake().fake_calls("hipInit"), 0);
}

TEST_F(HipDriverTest, NoDevice) {
  fake().fake_set_devices(0);
  expect_refusal(load_error(), DiagCode::device_absent, "the runtime finds no HIP device",
                 "HIP_VISIBLE_DEVICES");
}

TEST_F(HipDriverTest, AFailingStart) {
  fake().fake_fail("hipInit", 101, 0, -1);
  expect_refusal(load_error(), DiagCode::driver_failure,
                 "starting the runtime failed: hipErrorInvalidDevice (invalid device ordinal)", "rocminfo");
  fake().fake_fail("hipInit", 12345, 0, -1);  // a code without a name
  expect_refusal(load_error(), DiagCode::driver_failure, "HIP error 12345");
}

TEST_F(HipDriverTest, EveryQueryMayFail) {
  for (const char* function :
       {"hipRuntimeGetVersion", "hipGetDeviceCount", "hipDeviceGet", "hipDeviceGetName", "hipDeviceTotalMem",
        "hipDeviceGetAttribute", "hipGetDevicePropertiesR0600"}) {
    fake().fake_reset();
    fake().fake_fail(function, 1, 0, -1);
    const Checked result = load_error();
    ASSERT_FALSE(result) << function;
    EXPECT_EQ(result.error().status(), StatusCode::driver) << function;
    EXPECT_FALSE(result.error().diagnostics[0].hint.empty()) << function;
  }
}

}  // namespace
}  // namespace tilegen::runtime::hip
