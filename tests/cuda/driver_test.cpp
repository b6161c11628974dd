// Finding the driver and its devices: everything that may be missing is an error with a way out.
#include "fake_machine.h"
#include "support/diag_codes.h"

namespace tilegen::runtime::cuda {
namespace {

class DriverTest : public FakeMachine {};

Checked load_error(const char* path = TILEGEN_FAKE_CUDA_DRIVER) {
  auto loaded = Driver::load(path);
  if (!loaded) return loaded.error();
  return Unit{};
}

TEST_F(DriverTest, DevicesAreDescribed) {
  fake().fake_set_devices(2);
  fake().fake_set_capability(1, 8, 9);
  const Driver& d = driver();
  EXPECT_EQ(d.version_text(), "12.8");
  ASSERT_EQ(d.devices().size(), 2u);
  EXPECT_EQ(d.devices()[0].name, "Fake H200");
  EXPECT_EQ(d.devices()[0].major, 9);
  EXPECT_EQ(d.devices()[0].multiprocessors, 132);
  EXPECT_EQ(d.devices()[0].shared_bytes, 227 << 10);
  EXPECT_EQ(d.devices()[1].ordinal, 1);
  EXPECT_EQ(d.devices()[1].minor, 9);
  EXPECT_NE(d.devices()[1].handle, d.devices()[0].handle);
  EXPECT_EQ(d.devices()[1].memory_bytes, size_t{1} << 30);
  EXPECT_EQ(fake().fake_calls("cuDevicePrimaryCtxRetain"), 0);  // looking makes no context
}

TEST_F(DriverTest, NoLibrary) {
  expect_refusal(load_error("libcuda_that_is_not_there.so.1"), DiagCode::driver_absent,
                 "cannot be loaded: libcuda_that_is_not_there.so.1", "compile for 'host'");
}

TEST_F(DriverTest, AMissingFunctionIsNamed) {
  expect_refusal(load_error(TILEGEN_FAKE_CUDA_INCOMPLETE), DiagCode::driver_absent,
                 "has no function cuModuleLoadDataEx", "update");
}

TEST_F(DriverTest, OptionalFunctionsMayBeMissing) {
  FakeCuda controls(TILEGEN_FAKE_CUDA_OLD);
  controls.fake_reset();
  auto loaded = Driver::load(TILEGEN_FAKE_CUDA_OLD);
  ASSERT_TRUE(loaded) << loaded.error().to_text();
  EXPECT_EQ((*loaded)->cuda().context_id, nullptr);
  auto e = load_on_gpu(**loaded, one_kernel(), 0);
  ASSERT_TRUE(e);
  EXPECT_TRUE((*e)->launch(arguments(8), {}));
  EXPECT_EQ(controls.fake_launches(), 1);
}

TEST_F(DriverTest, AnOldDriverSaysHowOld) {
  fake().fake_set_version(10020);
  expect_refusal(load_error(), DiagCode::driver_absent, "supports CUDA 10.2, 11.0 or newer is needed",
                 "update");
  EXPECT_EQ(fake().fake_calls("cuInit"), 0);
}

TEST_F(DriverTest, NoDevice) {
  fake().fake_set_devices(0);
  expect_refusal(load_error(), DiagCode::device_absent, "finds no CUDA device", "CUDA_VISIBLE_DEVICES");
}

TEST_F(DriverTest, AFailingStart) {
  fake().fake_fail("cuInit", 803, 0, -1);
  expect_refusal(load_error(), DiagCode::driver_failure,
                 "starting the driver failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (system has",
                 "restart the machine");
  fake().fake_fail("cuInit", 12345, 0, -1);  // a code without a name
  expect_refusal(load_error(), DiagCode::driver_failure, "CUDA error 12345");
}

TEST_F(DriverTest, EveryQueryMayFail) {
  for (const char* function : {"cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
                               "cuDeviceTotalMem_v2", "cuDeviceGetAttribute"}) {
    fake().fake_reset();
    fake().fake_fail(function, 1, 0, -1);
    const Checked result = load_error();
    ASSERT_FALSE(result) << function;
    EXPECT_EQ(result.error().status(), StatusCode::driver) << function;
    EXPECT_FALSE(result.error().diagnostics[0].hint.empty()) << function;
  }
}

}  // namespace
}  // namespace tilegen::runtime::cuda
