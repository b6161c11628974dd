// Memory that launches have of their own: from the device's pool, in the order of the stream.
#include "fake_machine.h"
#include "runtime/gpu/workspace_pools.h"
#include "support/diag_codes.h"

namespace tilegen::runtime::cuda {
namespace {

class WorkspaceTest : public FakeMachine {
 protected:
  static constexpr size_t kFirst = 3, kSecond = 4;  // slots of the workspaces

  static std::shared_ptr<const driver::Artifact> two_kernels() {
    ArtifactBuilder b(
        "first second",
        "dim m\ntensor X: f32[m, 8] readonly\ntensor Y: f32[m, 8]\ntensor P: f32[3, m] workspace\n"
        "tensor R: f16[m] workspace\n");
    b.kernel("first");
    b.kernel("second");
    return b.done();
  }
  static const FakeLaunch& last(int back = 0) {
    return *fake().fake_launch(fake().fake_launches() - 1 - back);
  }
  static Stream stream(uintptr_t i) { return reinterpret_cast<Stream>(0x1000 + 16 * i); }
  static Checked launch(const Executable& e, Stream on, int64_t m = 20) {
    LaunchOptions options;
    options.stream = on;
    return e.launch(arguments(m), options);
  }
};

TEST_F(WorkspaceTest, KernelsOfALaunchShareItAndGiveItBack) {
  auto e = executable(two_kernels());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(launch(*e, stream(1)));
    for (int back : {0, 1}) EXPECT_EQ(last(back).pooled, 1);
    EXPECT_EQ(last(1).parameters, 5u);
    EXPECT_NE(last().values[kFirst], 0u);
    for (size_t slot : {kFirst, kSecond}) {
      EXPECT_EQ(last(1).values[slot], last().values[slot]);
      EXPECT_EQ(last().values[slot] % Workspace::kAlignment, 0u);
    }
    EXPECT_EQ(last().values[kSecond], last().values[kFirst] + 256);  // 3 * 20 * 4 bytes, rounded up
    EXPECT_EQ(last().values[1], 4096u);                              // tensors are where the arguments say
    EXPECT_EQ(fake().fake_pooled(stream(1)), 0);
  }
  EXPECT_EQ(fake().fake_calls("cuMemAllocFromPoolAsync"), 3);
  EXPECT_EQ(fake().fake_calls("cuMemFreeAsync"), 3);
}

TEST_F(WorkspaceTest, APoolIsMadeOncePerDevice) {
  fake().fake_set_devices(2);
  auto a = executable(two_kernels()), b = executable(two_kernels()), c = executable(two_kernels(), 1);
  for (const auto* e : {&a, &b, &c}) ASSERT_TRUE(launch(**e, nullptr));
  EXPECT_EQ(fake().fake_calls("cuMemPoolCreate"), 2);
  auto plain = executable(one_kernel());
  const int before = fake().fake_calls("cuMemAllocFromPoolAsync");
  ASSERT_TRUE(plain->launch(arguments(8), {}));
  EXPECT_EQ(fake().fake_calls("cuMemAllocFromPoolAsync"), before);
}

TEST_F(WorkspaceTest, ItIsPartOfACapture) {
  fake().fake_set_current(fake().fake_make_context(0));
  auto e = executable(two_kernels());
  ASSERT_TRUE(e->prepare());
  fake().fake_capture(stream(1), 1);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(launch(*e, stream(1)));
  fake().fake_capture(stream(1), 0);
  EXPECT_EQ(fake().fake_forbidden_calls(), 0);
  EXPECT_EQ(fake().fake_calls("cuMemFreeAsync"), 4);
}

TEST_F(WorkspaceTest, WithoutElementsItHasAnAddress) {
  auto e = executable(two_kernels());
  ASSERT_TRUE(e->prepare());
  const int before = fake().fake_launches();
  EXPECT_TRUE(launch(*e, nullptr, 0));
  EXPECT_EQ(fake().fake_launches(), before);  // grids of no blocks
  EXPECT_EQ(fake().fake_pooled(nullptr), 0);
}

TEST_F(WorkspaceTest, WhatTheDriverCannotGiveIsSaid) {
  auto e = executable(two_kernels());
  fake().fake_fail("cuMemPoolCreate", kOutOfMemory, 0, 1);
  expect_refusal(e->prepare(), DiagCode::driver_failure, "making a pool for the workspaces of 'p'");
  ASSERT_TRUE(e->prepare());
  fake().fake_fail("cuMemAllocFromPoolAsync", kOutOfMemory, 0, 1);
  const int before = fake().fake_launches();
  expect_refusal(launch(*e, stream(1)), DiagCode::driver_failure,
                 "allocating 512 bytes for the workspaces of 'p'");
  EXPECT_EQ(fake().fake_launches(), before);
  fake().fake_fail("cuLaunchKernel", kInvalidValue, 1, 1);
  expect_refusal(launch(*e, stream(1)), DiagCode::driver_failure, "launching 'second'");
  EXPECT_EQ(fake().fake_pooled(stream(1)), 0);
  fake().fake_fail("cuMemFreeAsync", kInvalidValue, 0, 1);
  expect_refusal(launch(*e, stream(1)), DiagCode::driver_failure,
                 "freeing 512 bytes for the workspaces of 'p'");
  EXPECT_TRUE(launch(*e, stream(1)));
}

TEST_F(WorkspaceTest, ADriverWithoutPoolsIsRefusedWithAWayOut) {
  FakeCuda controls(TILEGEN_FAKE_CUDA_OLD);
  controls.fake_reset();
  auto old = Driver::load(TILEGEN_FAKE_CUDA_OLD);
  ASSERT_TRUE(old);
  const auto refused = load_on_gpu(**old, two_kernels(), 0);
  ASSERT_FALSE(refused);
  const Diagnostic& d = refused.error().diagnostics.at(0);
  EXPECT_EQ(d.code, DiagCode::driver_absent);
  EXPECT_EQ(d.op, "P");
  EXPECT_NE(d.hint.find("have 'P' passed as a tensor"), std::string::npos);
  EXPECT_TRUE(load_on_gpu(**old, one_kernel(), 0));
}

}  // namespace
}  // namespace tilegen::runtime::cuda
