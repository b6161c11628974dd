// What a launch hands to the runtime, on which device, and what its code computes there.
#include <atomic>
#include <thread>

#include "fake_machine.h"

namespace tilegen::runtime::hip {
namespace {

class HipLaunchTest : public FakeMachine {
 protected:
  static std::vector<float> numbers(size_t rows) {
    std::vector<float> x(rows * 32);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    return x;
  }
  // X and Y of so many rows, as arguments with m and s = 2.5.
  struct Tensors {
    float *x, *y;
    std::vector<Argument> arguments;
  };
  Tensors tensors(int64_t rows, int ordinal = 0) {
    const auto count = static_cast<size_t>(rows);
    float* x = send(numbers(count), ordinal);
    float* y = send(std::vector<float>(32 * count, -1), ordinal);
    return {x, y, {integer(rows), floating(2.5), address(x), address(y)}};
  }
  void expect_scaled(const Tensors& t, size_t rows) {
    const std::vector<float> x = numbers(rows), y = fetch(t.y, 32 * rows);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 2.5f * x[i]) << i;
  }
};

TEST_F(HipLaunchTest, GridBlockStreamParametersAndResults) {
  auto e = executable(scale());
  const Tensors t = tensors(21);
  int token = 0;
  LaunchOptions options;
  options.stream = &token;
  ASSERT_TRUE(e->launch(t.arguments, options));
  ASSERT_EQ(fake().fake_launches(), 1);
  EXPECT_EQ(std::string(last().name).find("scale"), 0u);
  EXPECT_EQ(last().grid[0], 3u);
  EXPECT_EQ(last().grid[1] * last().grid[2], 1u);
  EXPECT_EQ(last().block[0], 64u);
  EXPECT_EQ(last().shared_bytes, 0u);  // the code says how much it has
  EXPECT_EQ(last().stream, &token);
  ASSERT_GE(last().parameters, 4u);
  EXPECT_EQ(last().values[0], 21u);
  EXPECT_EQ(last().values[2], reinterpret_cast<uint64_t>(t.x));
  EXPECT_TRUE(gpu::wait(driver(), driver().devices()[0], &token));
  expect_scaled(t, 21);
}

// The thread's device, and the launch.
TEST_F(HipLaunchTest, APreparedLaunchIsTwoCalls) {
  fake().fake_set_devices(2);
  auto here = executable(scale()), there = executable(scale(), 1);
  const Tensors t = tensors(8), u = tensors(8, 1);
  for (auto* e : {&here, &there}) ASSERT_TRUE((*e)->prepare());
  const auto launch = [](const Executable& e, const Tensors& with) {
    return [&] { EXPECT_TRUE(e.launch(with.arguments, {})); };
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(calls_of(launch(*here, t)), 2);
    EXPECT_EQ(calls_of(launch(*there, u)), 5);  // another device becomes the thread's, and is not afterwards
  }
}

TEST_F(HipLaunchTest, LaunchesGoToTheKernelsDevice) {
  fake().fake_set_devices(2);
  auto first = executable(scale(), 0), second = executable(scale(), 1);
  const Tensors t = tensors(8, 0), u = tensors(8, 1);
  for (int current : {0, 1}) {
    fake().fake_set_current(current);
    ASSERT_TRUE(first->launch(t.arguments, {}));
    EXPECT_EQ(last().device, 0);
    ASSERT_TRUE(second->launch(u.arguments, {}));
    EXPECT_EQ(last().device, 1);
    EXPECT_EQ(driver().current_device(), current);
  }
  EXPECT_EQ(fake().fake_calls("hipModuleLoadDataEx"), 2);
  expect_scaled(t, 8);
  expect_scaled(u, 8);
}

TEST_F(HipLaunchTest, ConcurrentFirstLaunchesLoadOnce) {
  auto e = executable(scale());
  const Tensors t = tensors(8);
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 10; ++n)
        if (!e->launch(t.arguments, {})) failed.fetch_add(1);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_EQ(fake().fake_calls("hipModuleLoadDataEx"), 1);
  EXPECT_EQ(fake().fake_launches(), 40);
  expect_scaled(t, 8);
  e.reset();
  EXPECT_EQ(fake().fake_loaded_modules(), 0);
}

// Addresses that the first version's guards refuse go to the fallback version.
TEST_F(HipLaunchTest, OtherAddressesTakeTheFallbackVersion) {
  auto e = executable(scale());
  Tensors t = tensors(9);
  t.arguments[0] = integer(8);
  t.arguments[2] = address(t.x + 1);
  t.arguments[3] = address(t.y + 1);
  ASSERT_TRUE(e->launch(t.arguments, {}));
  const std::vector<float> y = fetch(t.y, 8 * 32 + 2);
  EXPECT_EQ(y[0], -1);
  for (size_t i = 1; i <= 8 * 32; ++i) ASSERT_EQ(y[i], 2.5f * static_cast<float>(i));
  EXPECT_EQ(y[8 * 32 + 1], -1);
  EXPECT_EQ(fake().fake_calls("hipModuleLoadDataEx"), 1);
  t.arguments[2] = address(t.x);
  t.arguments[3] = address(t.y);
  ASSERT_TRUE(e->launch(t.arguments, {}));
  EXPECT_EQ(fake().fake_calls("hipModuleLoadDataEx"), 2);
  expect_scaled(t, 8);
}

TEST_F(HipLaunchTest, AGridOfNoBlocksLaunchesNothing) {
  ASSERT_TRUE(executable(scale())->launch(
      std::vector{integer(0), floating(1), address(nullptr), address(nullptr)}, {}));
  EXPECT_EQ(fake().fake_launches(), 0);
}

TEST_F(HipLaunchTest, ACapturedLaunchRunsWhenItsGraphDoes) {
  int token = 0;
  LaunchOptions on_stream;
  on_stream.stream = &token;
  auto e = executable(scale());
  const Tensors t = tensors(8);
  fake().fake_begin_capture(&token);
  for (void* stream : {static_cast<void*>(&token), static_cast<void*>(nullptr)}) {
    on_stream.stream = stream;
    const Checked refused = e->launch(t.arguments, on_stream);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().to_text().find("the stream is being captured and the kernel is not loaded"),
              std::string::npos);
    EXPECT_NE(refused.error().to_text().find("tl_kernel_prepare"), std::string::npos);
  }
  EXPECT_EQ(fake().fake_last_error(), 0);
  fake().fake_end_capture();
  EXPECT_EQ(fake().fake_forbidden_calls(), 0);  // the capture was not spoilt
  ASSERT_TRUE(e->prepare());
  on_stream.stream = &token;
  fake().fake_begin_capture(&token);
  ASSERT_TRUE(e->launch(t.arguments, on_stream));
  void* graph = fake().fake_end_capture();
  EXPECT_EQ(fake().fake_forbidden_calls(), 0);
  EXPECT_EQ(fetch(t.y, 1)[0], -1);
  ASSERT_EQ(fake().fake_replay(graph), 0);
  expect_scaled(t, 8);
}

TEST_F(HipLaunchTest, InfoIsEstimatedBeforeAndMeasuredBehindTheLoad) {
  auto e = executable(scale());
  auto rows = e->info();
  ASSERT_TRUE(rows);
  EXPECT_FALSE((*rows)[0].measured);
  // The code tells them.
  EXPECT_GT((*rows)[0].registers, 0);
  EXPECT_EQ((*rows)[0].accumulation_registers, 0);
  EXPECT_GT((*rows)[0].scalar_registers, 0);
  EXPECT_EQ((*rows)[0].local_bytes, 0);
  EXPECT_EQ((*rows)[0].dynamic_shared_bytes, 0);
  EXPECT_EQ((*rows)[0].static_shared_bytes, 1024);
  EXPECT_EQ((*rows)[0].blocks_per_multiprocessor, 32);  // of one wave each
  ASSERT_TRUE(e->prepare());
  rows = e->info();
  ASSERT_TRUE(rows);
  EXPECT_TRUE((*rows)[0].measured);
  EXPECT_GT((*rows)[0].registers, 0);
  EXPECT_GT((*rows)[0].scalar_registers, 0);
  EXPECT_EQ((*rows)[0].static_shared_bytes, 1024);
  EXPECT_GE((*rows)[0].max_threads, 64);
  EXPECT_GT((*rows)[0].blocks_per_multiprocessor, 0);
  EXPECT_EQ(e->load_log(), "");
}

TEST_F(HipLaunchTest, OptionalTensorsMayBeNull) {
  auto e =
      executable(compile("tl 1 program biased\n"
                         "dim m\n"
                         "tensor X: f32[m, 32] readonly\n"
                         "tensor Bias: f32[32] readonly optional\n"
                         "tensor Y: f32[m, 32]\n"
                         "kernel k grid(b: ceildiv(m, 8)) threads 64 {\n"
                         "  parallel i, j in 8, 32 {\n"
                         "    Y[b * 8 + i, j] = X[b * 8 + i, j] + select(present(Bias), Bias[j], 0.0)\n"
                         "  }\n"
                         "}\n"));
  float* x = send(numbers(21), 0);
  float* y = send(std::vector<float>(21 * 32, -1), 0);
  float* bias = send(numbers(1), 0);
  for (float* const given : {static_cast<float*>(nullptr), bias}) {
    ASSERT_TRUE(e->launch(std::vector{integer(21), address(x), address(given), address(y)}, {}));
    const std::vector<float> all = numbers(21), got = fetch(y, 21 * 32);
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], all[i] + (given ? static_cast<float>(i % 32) : 0.0f)) << i;
  }
}

}  // namespace
}  // namespace tilegen::runtime::hip
