// What only a real driver can show: captured launches, streams, and a context that a kernel broke. Skipped
// where there is no CUDA device.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "../capi/scope.h"
#include "../differential/launch_watch.h"
#include "device_driver.h"

namespace tilegen::test {
namespace {

constexpr char kScale[] =
    "tl 1 program scaling\n"
    "dim m\n"
    "tensor X: f32[m, 32] readonly\n"
    "tensor Y: f32[m, 32]\n"
    "kernel double grid(b: ceildiv(m, 8)) {\n"
    "  parallel i, j in 8, 32 {\n"
    "    Y[b * 8 + i, j] = X[b * 8 + i, j] * 2.0f32\n"
    "  }\n"
    "}\n"
    "kernel add grid(b: ceildiv(m, 8)) {\n"
    "  parallel i, j in 8, 32 {\n"
    "    Y[b * 8 + i, j] = Y[b * 8 + i, j] + 1.0f32\n"
    "  }\n"
    "}\n";
constexpr int64_t kRows = 37;

class Device : public testing::Test {
 protected:
  void SetUp() override {
    tl_target* target = nullptr;
    if (tl_target_parse("cuda", &target, nullptr) != TL_OK) GTEST_SKIP() << "no CUDA device";
    const Target owned_target(target);
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    watch_.emplace(std::string("program scaling for cuda, m = 37, kernels double and add of 5 blocks, in ") +
                   test->name());
    tl_program* program = nullptr;
    tl_artifact* artifact = nullptr;
    tl_kernel* kernel = nullptr;
    tl_error* error = nullptr;
    ASSERT_EQ(tl_program_parse(context_.get(), kScale, sizeof kScale - 1, "p.tl", &program, &error), TL_OK)
        << tl_error_message(error);
    const Program owned_program(program);
    ASSERT_EQ(tl_compile(context_.get(), program, target, nullptr, &artifact, &error), TL_OK)
        << tl_error_message(error);
    const Artifact owned_artifact(artifact);
    ASSERT_EQ(tl_kernel_load(context_.get(), artifact, TL_DEVICE_ANY, &kernel, &error), TL_OK)
        << tl_error_message(error);
    kernel_.reset(kernel);
    for (size_t i = 0; i < host_.size(); ++i) host_[i] = static_cast<float>(i);
    ASSERT_EQ(tl_device_allocate(1, bytes() + 64, &x_, nullptr), TL_OK);
    ASSERT_EQ(tl_device_allocate(1, bytes() + 64, &y_, nullptr), TL_OK);
    ASSERT_EQ(tl_device_copy(1, x_, host_.data(), bytes(), nullptr, nullptr), TL_OK);
  }
  void TearDown() override {
    tl_device_free(1, x_, nullptr);
    tl_device_free(1, y_, nullptr);
    watch_.reset();
  }
  size_t bytes() const { return host_.size() * sizeof(float); }
  tl_status launch(void* x, void* y, void* stream, tl_error** error = nullptr) {
    const auto pointer = [](void* p) {
      return tl_arg{TL_ARG_POINTER, 0, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(p))};
    };
    const tl_arg args[] = {{TL_ARG_I64, 0, kRows}, pointer(x), pointer(y)};
    const tl_launch how{sizeof(tl_launch), 0, stream};
    return tl_kernel_launch(kernel_.get(), &how, args, 3, error);
  }
  void expect_result(void* y, void* stream) {
    std::vector<float> result(host_.size());
    tl_error* error = nullptr;
    ASSERT_EQ(tl_device_copy(1, result.data(), y, bytes(), stream, &error), TL_OK) << tl_error_message(error);
    for (size_t i = 0; i < host_.size(); ++i) ASSERT_EQ(result[i], 2 * host_[i] + 1) << i;
  }

  Context context_ = make_context();
  Kernel kernel_;
  std::optional<differential::LaunchWatch> watch_;
  std::vector<float> host_ = std::vector<float>(kRows * 32);
  void *x_ = nullptr, *y_ = nullptr;
};

TEST_F(Device, RunsASequenceAndSaysWhatItNeeds) {
  ASSERT_EQ(launch(x_, y_, nullptr), TL_OK);
  expect_result(y_, nullptr);
  for (size_t i = 0; i < tl_kernel_form_count(kernel_.get()); ++i) {
    tl_kernel_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(tl_kernel_describe(kernel_.get(), i, &info, nullptr), TL_OK);
    EXPECT_EQ(info.measured, 1);
    EXPECT_GT(info.registers, 0);
    EXPECT_GE(info.max_threads, static_cast<int32_t>(info.threads));
    EXPECT_GT(info.blocks_per_multiprocessor, 0);
    std::printf("%s: %d registers, %d blocks, needs '%s'; loaded in %.1f ms\n%s\n", info.name, info.registers,
                info.blocks_per_multiprocessor, info.guards, info.load_ms, i == 0 ? info.log : "");
  }
}

TEST_F(Device, UnalignedTensorsTakeTheOtherVersion) {
  char* x = static_cast<char*>(x_) + 4;
  ASSERT_EQ(tl_device_copy(1, x, host_.data(), bytes(), nullptr, nullptr), TL_OK);
  ASSERT_EQ(launch(x, static_cast<char*>(y_) + 12, nullptr), TL_OK);
  expect_result(static_cast<char*>(y_) + 12, nullptr);
}

TEST_F(Device, LaunchesAreCaptured) {
  ASSERT_EQ(tl_kernel_prepare(kernel_.get(), nullptr), TL_OK);
  void *primary = nullptr, *stream = nullptr, *graph = nullptr, *runnable = nullptr;
  ASSERT_EQ(call("cuDevicePrimaryCtxRetain", &primary, 0), 0);
  ASSERT_EQ(call("cuCtxSetCurrent", primary), 0);
  ASSERT_EQ(tl_kernel_prepare(kernel_.get(), nullptr), TL_OK);
  ASSERT_EQ(call("cuStreamCreate", &stream, 1u), 0);
  ASSERT_EQ(call("cuStreamBeginCapture_v2", stream, 0), 0);  // the strictest mode
  tl_error* error = nullptr;
  EXPECT_EQ(launch(x_, y_, stream, &error), TL_OK) << tl_error_message(error);
  ASSERT_EQ(call("cuStreamEndCapture", stream, &graph), 0);
  ASSERT_EQ(call("cuGraphInstantiateWithFlags", &runnable, graph, 0ull), 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(call("cuGraphLaunch", runnable, stream), 0);
  expect_result(y_, stream);
  call("cuGraphExecDestroy", runnable);
  call("cuGraphDestroy", graph);
  call("cuStreamDestroy_v2", stream);
  call("cuCtxSetCurrent", static_cast<void*>(nullptr));
}

// Kernels that begin early still see all that the one before wrote: x -> y -> x ..., each element 2 v + 1
// modulo what f32 holds.
TEST_F(Device, EveryLaunchSeesTheOneBefore) {
  constexpr int kLaunches = 20;
  for (size_t i = 0; i < host_.size(); ++i) host_[i] = static_cast<float>(i % 8);
  for (int round = 0; round < 50; ++round) {
    ASSERT_EQ(tl_device_copy(1, x_, host_.data(), bytes(), nullptr, nullptr), TL_OK);
    for (int i = 0; i < kLaunches; ++i)
      ASSERT_EQ(launch(i % 2 == 0 ? x_ : y_, i % 2 == 0 ? y_ : x_, nullptr), TL_OK);
    std::vector<float> result(host_.size());
    ASSERT_EQ(tl_device_copy(1, result.data(), x_, bytes(), nullptr, nullptr), TL_OK);
    const float steps = 1 << kLaunches;
    for (size_t i = 0; i < host_.size(); ++i)
      ASSERT_EQ(result[i], steps * host_[i] + steps - 1) << round << ", " << i;
  }
}

// A capture is not spoilt by a kernel that is not loaded yet.
TEST_F(Device, AnUnpreparedLaunchInACaptureIsRefused) {
  void *primary = nullptr, *stream = nullptr, *graph = nullptr;
  ASSERT_EQ(call("cuDevicePrimaryCtxRetain", &primary, 0), 0);
  ASSERT_EQ(call("cuCtxSetCurrent", primary), 0);
  ASSERT_EQ(call("cuStreamCreate", &stream, 1u), 0);
  ASSERT_EQ(call("cuStreamBeginCapture_v2", stream, 0), 0);
  tl_error* error = nullptr;
  EXPECT_EQ(launch(x_, y_, stream, &error), TL_DRIVER);
  EXPECT_NE(std::string(tl_error_message(error)).find("tl_kernel_prepare"), std::string::npos)
      << tl_error_message(error);
  tl_error_release(error);
  EXPECT_EQ(call("cuStreamEndCapture", stream, &graph), 0);
  call("cuStreamDestroy_v2", stream);
  call("cuCtxSetCurrent", static_cast<void*>(nullptr));
}

TEST_F(Device, AContextOfTheCallerIsUsed) {
  void* mine = nullptr;
  ASSERT_EQ(call("cuCtxCreate_v2", &mine, 0u, 0), 0);
  void *x = nullptr, *y = nullptr;
  ASSERT_EQ(tl_device_allocate(1, bytes(), &x, nullptr), TL_OK);
  ASSERT_EQ(tl_device_allocate(1, bytes(), &y, nullptr), TL_OK);
  ASSERT_EQ(tl_device_copy(1, x, host_.data(), bytes(), nullptr, nullptr), TL_OK);
  tl_error* error = nullptr;
  EXPECT_EQ(launch(x, y, nullptr, &error), TL_OK) << tl_error_message(error);
  expect_result(y, nullptr);
  void* current = nullptr;
  call("cuCtxGetCurrent", &current);
  EXPECT_EQ(current, mine);
  ASSERT_EQ(call("cuCtxDestroy_v2", mine), 0);
  ASSERT_EQ(launch(x_, y_, nullptr), TL_OK);  // in the primary one
  expect_result(y_, nullptr);
  kernel_.reset();  // a context is gone, its module with it
}

// A context that a kernel broke serves nobody after it: this process is another.
class DeviceDeathTest : public Device {
 protected:
  void break_context();
};

void DeviceDeathTest::break_context() {
  ASSERT_EQ(launch(x_, y_, nullptr), TL_OK);
  ASSERT_EQ(launch(reinterpret_cast<void*>(uintptr_t{1} << 45), y_, nullptr), TL_OK);
  tl_error* error = nullptr;
  EXPECT_EQ(tl_device_wait(1, nullptr, &error), TL_DRIVER);
  std::printf("%s\n", tl_error_message(error));
  EXPECT_NE(std::string(tl_error_message(error)).find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos);
  EXPECT_NE(std::string(tl_error_message(error)).find("'add"), std::string::npos);
  tl_error_release(error);
  EXPECT_EQ(launch(x_, y_, nullptr, &error), TL_DRIVER);
  EXPECT_NE(std::string(tl_error_message(error)).find("is broken since"), std::string::npos)
      << tl_error_message(error);
  tl_error_release(error);
}

TEST_F(DeviceDeathTest, AWildPointerIsReportedOnceWithTheKernel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        break_context();
        std::exit(HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tilegen::test
