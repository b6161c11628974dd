// Memory that launches have of their own: from the device's pool, in the order of the stream.
#include <algorithm>

#include "fake_machine.h"

namespace tilegen::runtime::hip {
namespace {

class HipWorkspaceTest : public FakeMachine {
 protected:
  static constexpr int64_t kRows = 40;

  static uint16_t half(int v) {  // 0 to 7
    static constexpr uint16_t kHalves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
    return kHalves[v];
  }
  static int a(size_t i, size_t k) { return static_cast<int>((3 * i + 5 * k) % 8); }
  static int b(size_t k, size_t j) { return static_cast<int>((k + 7 * j) % 8); }

  std::vector<Argument> product_arguments() {
    std::vector<uint16_t> x(kRows * 64), w(64 * 32);
    for (size_t i = 0; i < x.size(); ++i) x[i] = half(a(i / 64, i % 64));
    for (size_t i = 0; i < w.size(); ++i) w[i] = half(b(i / 32, i % 32));
    c_ = send(std::vector<float>(kRows * 32, -1));
    return {integer(kRows), address(send(x)), address(send(w)), address(c_)};
  }
  void expect_product() {
    const std::vector<float> c = fetch(c_, kRows * 32);
    for (size_t i = 0; i < c.size(); ++i) {
      int sum = 0;
      for (size_t k = 0; k < 64; ++k) sum += a(i / 32, k) * b(k, i % 32);
      ASSERT_EQ(c[i], static_cast<float>(sum)) << i;
    }
  }
  float* c_ = nullptr;
};

TEST_F(HipWorkspaceTest, KernelsOfALaunchShareItAndGiveItBack) {
  auto e = executable(product());
  const auto arguments = product_arguments();
  int token = 0;
  LaunchOptions options;
  options.stream = &token;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(e->launch(arguments, options));
    for (int back : {0, 1}) EXPECT_EQ(last(back).pooled, 1);
    EXPECT_EQ(fake().fake_pooled(&token), 0);
  }
  EXPECT_EQ(fake().fake_calls("hipMemPoolCreate"), 1);
  EXPECT_EQ(fake().fake_calls("hipMallocFromPoolAsync"), 2);
  expect_product();
}

TEST_F(HipWorkspaceTest, ItIsPartOfACapture) {
  auto e = executable(product());
  const auto arguments = product_arguments();
  ASSERT_TRUE(e->prepare());
  int token = 0;
  LaunchOptions options;
  options.stream = &token;
  fake().fake_begin_capture(&token);
  ASSERT_TRUE(e->launch(arguments, options));
  void* graph = fake().fake_end_capture();
  EXPECT_EQ(fake().fake_forbidden_calls(), 0);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(fake().fake_replay(graph), 0);
  expect_product();
}

// C = A * B, halves of k that meet in a workspace of the launch.
constexpr char kShared[] =
    "tl 1 program shared\n"
    "dim m\n"
    "tensor A: f16[m, 64] readonly\n"
    "tensor B: f16[64, 32] readonly\n"
    "tensor C: f32[m, 32]\n"
    "kernel shared grid(by: ceildiv(m, 32)) threads 64 {\n"
    "  alloc a: shared f16[32, 32]\n"
    "  alloc w: shared f16[32, 32]\n"
    "  alloc c: fragment f32[32, 32]\n"
    "  fill c, 0.0f32\n"
    "  pipelined ko in 0 .. 2 with {split = 2} {\n"
    "    copy A[by * 32 :+ 32, ko * 32 :+ 32] -> a\n"
    "    copy B[ko * 32 :+ 32, 0 :+ 32] -> w\n"
    "    gemm a, w -> c\n"
    "  }\n"
    "  copy c -> C[by * 32 :+ 32, 0 :+ 32]\n"
    "}\n";

// In new memory counters hold anything; in the graph's they rest as the launch before has left them.
TEST_F(HipWorkspaceTest, BlocksThatShareALoopMeetThere) {
  auto e = executable(compile(kShared));
  ASSERT_EQ(e->artifact().schedule.kernels[0].split->through, "workspace");
  const auto arguments = product_arguments();
  ASSERT_TRUE(e->launch(arguments, {}));
  expect_product();
  int token = 0;
  LaunchOptions options;
  options.stream = &token;
  fake().fake_begin_capture(&token);
  ASSERT_TRUE(e->launch(arguments, options));
  void* graph = fake().fake_end_capture();
  for (int i = 0; i < 3; ++i) {
    std::fill(c_, c_ + kRows * 32, -1.0f);  // the stand-in's memory is the host's
    ASSERT_EQ(fake().fake_replay(graph), 0);
    expect_product();
  }
}

// The version that takes them has workspaces of its own.
TEST_F(HipWorkspaceTest, ALaunchWithTensorsAtOddPlacesHasThemToo) {
  auto e = executable(compile(kShared));
  auto arguments = product_arguments();
  std::vector<uint16_t> x(1 + kRows * 64);
  for (size_t i = 1; i < x.size(); ++i) x[i] = half(a((i - 1) / 64, (i - 1) % 64));
  arguments[1] = address(send(x) + 1);
  ASSERT_TRUE(e->launch(arguments, {}));
  expect_product();
  EXPECT_GT(e->version_count(), 1u);
}

TEST_F(HipWorkspaceTest, ADeviceWithoutPoolsIsRefusedWithAWayOut) {
  fake().fake_set_attribute(88, 0);
  const auto refused = load_on_gpu(driver(), product(), 0);
  ASSERT_FALSE(refused);
  const Diagnostic& d = refused.error().diagnostics.at(0);
  EXPECT_EQ(d.code, DiagCode::driver_absent);
  EXPECT_EQ(d.op, "P");
  EXPECT_NE(d.message.find("hipMallocFromPoolAsync; this one supports HIP 6.2"), std::string::npos)
      << d.message;
  EXPECT_NE(d.hint.find("have 'P' passed as a tensor"), std::string::npos);
  EXPECT_TRUE(load_on_gpu(driver(), scale(), 0));
}

TEST_F(HipWorkspaceTest, WhatTheRuntimeCannotGiveIsSaid) {
  auto e = executable(product());
  const auto arguments = product_arguments();
  fake().fake_fail("hipMemPoolCreate", kOutOfMemory, 0, 1);
  expect_refusal(e->prepare(), DiagCode::driver_failure, "making a pool for the workspaces of 'product'");
  fake().fake_fail("hipMallocFromPoolAsync", kOutOfMemory, 0, 1);
  expect_refusal(e->launch(arguments, {}), DiagCode::driver_failure, "bytes for the workspaces of 'product'",
                 "`rocm-smi`");
  fake().fake_fail("hipModuleLaunchKernel", kInvalidValue, 1, 1);
  expect_refusal(e->launch(arguments, {}), DiagCode::driver_failure, "launching 'sum");
  EXPECT_EQ(fake().fake_pooled(nullptr), 0);
  EXPECT_EQ(fake().fake_last_error(), 0);  // nobody else finds the failures
  ASSERT_TRUE(e->launch(arguments, {}));
  expect_product();
}

TEST_F(HipWorkspaceTest, MemoryOfADevice) {
  fake().fake_set_devices(2);
  const Device& second = driver().devices()[1];
  auto memory = gpu::allocate(driver(), second, 100);
  ASSERT_TRUE(memory);
  EXPECT_EQ(driver().current_device(), 0);
  EXPECT_TRUE(gpu::free(driver(), second, *memory));
  const auto refused = gpu::allocate(driver(), second, size_t{1} << 40);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().to_text().find("bytes on hip:1 (Fake MI250X) failed: hipErrorOutOfMemory"),
            std::string::npos)
      << refused.error().to_text();
}

}  // namespace
}  // namespace tilegen::runtime::hip
