// Launches that have a fallback version compiled: from small stacks, stopped on their way, ahead.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "../capi/scope.h"
#include "fake_control.h"

namespace tilegen::test {
namespace {

using Clock = std::chrono::steady_clock;

// The promise is 50 ms; a loaded machine may keep any thread from running for as long again, and longer.
constexpr double kAllowedMs = 400;

FakeCuda& fake() {
  static FakeCuda controls(TILEGEN_FAKE_CUDA_DRIVER);
  return controls;
}

double ms_since(Clock::time_point t) {
  return std::chrono::duration<double, std::milli>(Clock::now() - t).count();
}

// Takes some hundred milliseconds to compile, or a multiple.
std::string long_to_compile(int statements) {
  std::string loops;
  for (int i = 0; i < statements; ++i)
    loops += "  parallel i in 64 {\n    t[i] = exp(t[i]) + X[i + " + std::to_string(i % 64) + "]\n  }\n";
  return "tl 1 program p\ntensor X: f32[65536] readonly\ntensor Y: f32[65536]\nkernel k grid (b: 1) {\n"
         "  alloc t: fragment f32[64]\n  copy X[0 :+ 64] -> t\n" +
         loops + "  copy t -> Y[0 :+ 64]\n}\n";
}

constexpr char kGemm[] =
    "tl 1 program p\ndim m\ndim n\ndim k\ntensor A: f16[m, k] readonly\ntensor B: f16[k, n] readonly\n"
    "tensor C: f16[m, n]\nkernel gemm grid (by: ceildiv(m, 128), bx: ceildiv(n, 128)) threads 256 {\n"
    "  alloc As: shared f16[128, 64]\n  alloc Bs: shared f16[64, 128]\n  alloc acc: fragment f32[128, 128]\n"
    "  fill acc, 0.0f32\n  pipelined ko in 0 .. ceildiv(k, 64) {\n"
    "    copy A[by * 128 :+ 128, ko * 64 :+ 64] -> As\n    copy B[ko * 64 :+ 64, bx * 128 :+ 128] -> Bs\n"
    "    gemm As, Bs -> acc\n  }\n  copy acc -> C[by * 128 :+ 128, bx * 128 :+ 128]\n}\n";

class Fallback : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    fake().fake_set_devices(1);
    ASSERT_EQ(tl_device_count(), 2u);
  }

  // On device 1, with whatever was compiled for it kept.
  Kernel load(const std::string& text, const char* target_name) {
    tl_program* program = nullptr;
    tl_target* target = nullptr;
    tl_artifact* artifact = nullptr;
    tl_kernel* kernel = nullptr;
    tl_error* error = nullptr;
    EXPECT_EQ(tl_program_parse(context_.get(), text.data(), text.size(), nullptr, &program, &error), TL_OK)
        << tl_error_message(error);
    const Program owned_program(program);
    EXPECT_EQ(tl_target_parse(target_name, &target, nullptr), TL_OK);
    const Target owned_target(target);
    EXPECT_EQ(tl_compile(context_.get(), program, target, nullptr, &artifact, &error), TL_OK)
        << tl_error_message(error);
    artifact_.reset(artifact);
    EXPECT_EQ(tl_kernel_load(context_.get(), artifact, 1, &kernel, &error), TL_OK) << tl_error_message(error);
    return Kernel(kernel);
  }

  static tl_arg at(uint64_t address) { return {TL_ARG_POINTER, 0, address}; }
  static tl_arg number(uint64_t value) { return {TL_ARG_I64, 0, value}; }
  // Of the long program, and of the product: tensors that the first versions do not take.
  std::vector<tl_arg> unaligned_ = {at(0x10004), at(0x20004)};
  std::vector<tl_arg> odd_product_ = {number(256),  number(255),  number(257),
                                      at(0x100002), at(0x200002), at(0x300002)};
  std::vector<tl_arg> whole_product_ = {number(256),  number(256),  number(256),
                                        at(0x100000), at(0x200000), at(0x300000)};

  static tl_status launch(const Kernel& kernel, const std::vector<tl_arg>& args, tl_launch how = {},
                          tl_error** error = nullptr) {
    how.struct_size = sizeof how;
    return tl_kernel_launch(kernel.get(), &how, args.data(), args.size(), error);
  }

  Context context_ = make_context();
  Artifact artifact_;
};

void on_small_stack(std::function<void()> work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
  pthread_t thread;
  const auto main = [](void* w) -> void* {
    (*static_cast<std::function<void()>*>(w))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, main, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST_F(Fallback, IsMadeOnTheLibrarysOwnStack) {
  const Kernel kernel = load(kGemm, "sm_90a");
  const size_t versions = tl_kernel_form_count(kernel.get());
  const int launches = fake().fake_launches();
  on_small_stack([&] {
    EXPECT_EQ(launch(kernel, odd_product_), TL_OK);
    tl_launch limited{};
    limited.timeout_ms = 60000;
    EXPECT_EQ(launch(kernel, odd_product_, limited), TL_OK);
    EXPECT_EQ(launch(kernel, whole_product_), TL_OK);
  });
  EXPECT_EQ(fake().fake_launches(), launches + 3);
  EXPECT_GT(tl_kernel_form_count(kernel.get()), versions);
}

TEST_F(Fallback, ALaunchThatMakesItEndsWhenItsTimeDoes) {
  const Kernel kernel = load(long_to_compile(1200), "sm_80");
  ASSERT_EQ(tl_kernel_prepare(kernel.get(), nullptr), TL_OK);
  const int launches = fake().fake_launches();
  tl_launch limited{};
  limited.timeout_ms = 30;
  tl_error* error = nullptr;
  auto start = Clock::now();
  EXPECT_EQ(launch(kernel, unaligned_, limited, &error), TL_CANCELLED);
  const double late = ms_since(start) - 30;
  const Failure failure(error);
  EXPECT_NE(std::string(first(failure).message).find("while a fallback version of 'p' was compiled"),
            std::string::npos)
      << first(failure).message;
  EXPECT_STREQ(first(failure).code, "cancelled_by_caller");
  EXPECT_LE(late, kAllowedMs);
  EXPECT_EQ(tl_kernel_form_count(kernel.get()), 1u);
  EXPECT_EQ(fake().fake_launches(), launches);
  std::printf("clock %.1f ms after (promised: 50)\n", late);
  // Arguments of the first version are none of its business, and the next launch has the time that it takes.
  EXPECT_EQ(launch(kernel, {at(0x10000), at(0x20000)}, limited), TL_OK);
  start = Clock::now();
  EXPECT_EQ(launch(kernel, unaligned_), TL_OK);
  EXPECT_GT(ms_since(start), 30) << "the test's program compiles too fast";
  EXPECT_EQ(tl_kernel_form_count(kernel.get()), 2u);
  EXPECT_EQ(fake().fake_launches(), launches + 2);
  EXPECT_EQ(launch(kernel, unaligned_, limited), TL_OK) << "nothing is left to make";
}

TEST_F(Fallback, ALaunchThatMakesItEndsWhenItsCallerSays) {
  struct Asked {
    Clock::time_point start = Clock::now(), said_at{};
    std::atomic<bool> said{false};
    std::atomic<int> behind{0};
    std::atomic<bool> closed{false};
  } asked;
  const auto ask = [](void* user) -> int32_t {
    auto& a = *static_cast<Asked*>(user);
    if (a.closed) ++a.behind;
    if (ms_since(a.start) < 30) return 0;
    if (!a.said.exchange(true)) a.said_at = Clock::now();
    return 1;
  };
  const Kernel kernel = load(long_to_compile(1200), "sm_80");
  const Context caller = make_context();
  ASSERT_EQ(tl_context_set_cancel(caller.get(), ask, nullptr, &asked, nullptr), TL_OK);
  tl_launch how{};
  how.context = caller.get();
  asked.start = Clock::now();
  EXPECT_EQ(launch(kernel, unaligned_, how), TL_CANCELLED);
  const double late = ms_since(asked.said_at);
  asked.closed = true;
  EXPECT_TRUE(asked.said);
  EXPECT_LE(late, kAllowedMs);
  std::printf("callback %.1f ms after (promised: 50)\n", late);
  EXPECT_EQ(launch(kernel, unaligned_), TL_OK);
  EXPECT_EQ(asked.behind, 0);
}

// One who waits for another's compilation has a time of their own.
TEST_F(Fallback, WhoeverWaitsForAnothersCompilationMayLeave) {
  const Kernel kernel = load(long_to_compile(1200), "sm_80");
  std::thread patient([&] { EXPECT_EQ(launch(kernel, unaligned_), TL_OK); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  tl_launch limited{};
  limited.timeout_ms = 30;
  const auto start = Clock::now();
  const tl_status status = launch(kernel, unaligned_, limited);
  EXPECT_TRUE(status == TL_CANCELLED || status == TL_OK) << status;
  EXPECT_LE(ms_since(start) - 30, kAllowedMs);
  patient.join();
  EXPECT_EQ(launch(kernel, unaligned_, limited), TL_OK);
}

// The driver's compiler cannot be stopped: the launch is left out, what was loaded stays.
TEST_F(Fallback, TimeThatRunsOutInTheDriver) {
  const Kernel kernel = load(kGemm, "sm_90a");
  const int launches = fake().fake_launches();
  fake().fake_slow_load(100);
  tl_launch limited{};
  limited.timeout_ms = 50;
  tl_error* error = nullptr;
  EXPECT_EQ(launch(kernel, whole_product_, limited, &error), TL_CANCELLED);
  EXPECT_STREQ(first(Failure(error)).code, "cancelled_by_caller");
  EXPECT_EQ(fake().fake_launches(), launches);
  const int loads = fake().fake_calls("cuModuleLoadDataEx");
  EXPECT_EQ(launch(kernel, whole_product_, limited), TL_OK);
  EXPECT_EQ(fake().fake_calls("cuModuleLoadDataEx"), loads);
  fake().fake_slow_load(0);
}

struct Heard {
  std::vector<std::string> stages;
  std::atomic<bool> closed{false};
  std::atomic<int> behind{0};
  static void hear(void* user, tl_log_level, const char* stage, const char*) {
    auto& self = *static_cast<Heard*>(user);
    if (self.closed) ++self.behind;
    if (!self.closed) self.stages.push_back(stage);
  }
  bool has(const std::string& stage) const {
    return std::find(stages.begin(), stages.end(), stage) != stages.end();
  }
};

// The launch's context hears of it while the launch lasts, and of no launch that has nothing to make.
TEST_F(Fallback, IsToldToTheLaunchsContext) {
  const Kernel kernel = load(long_to_compile(1200), "sm_80");
  Heard cancelled, heard;
  const Context caller = make_context();
  tl_launch how{};
  how.context = caller.get();
  how.timeout_ms = 100;
  ASSERT_EQ(tl_context_set_log(caller.get(), TL_LOG_TRACE, Heard::hear, nullptr, &cancelled, nullptr), TL_OK);
  EXPECT_EQ(launch(kernel, unaligned_, how), TL_CANCELLED);
  cancelled.closed = true;
  EXPECT_FALSE(cancelled.has("generate.emit"));
  how.timeout_ms = 0;
  ASSERT_EQ(tl_context_set_log(caller.get(), TL_LOG_INFO, Heard::hear, nullptr, &heard, nullptr), TL_OK);
  EXPECT_EQ(launch(kernel, unaligned_, how), TL_OK);
  for (const char* stage : {"lower", "verify", "generate", "fallback"})
    EXPECT_TRUE(heard.has(stage)) << stage;
  EXPECT_EQ(cancelled.behind, 0);
  const size_t messages = heard.stages.size();
  EXPECT_EQ(launch(kernel, unaligned_, how), TL_OK);
  EXPECT_EQ(heard.stages.size(), messages);
}

// Compiled, inspected and loaded ahead, a fallback version may be launched in a capture.
TEST_F(Fallback, IsMadeAheadAndShowsItsSchedule) {
  const Kernel kernel = load(kGemm, "sm_90a");
  std::string schedules;
  tl_artifact* next = nullptr;
  int versions = 1;
  tl_artifact_retain(artifact_.get());
  for (Artifact at(artifact_.get()); at; at.reset(next), ++versions) {
    tl_error* error = nullptr;
    ASSERT_EQ(tl_artifact_fallback(context_.get(), at.get(), &next, &error), TL_OK)
        << tl_error_message(error);
    if (!next) break;
    const char* text = nullptr;
    size_t size = 0;
    ASSERT_EQ(tl_artifact_section(next, TL_SECTION_SCHEDULE_TEXT, &text, &size, nullptr), TL_OK);
    schedules += text;
  }
  EXPECT_EQ(versions, 5);
  EXPECT_NE(schedules.find("async_copy"), std::string::npos);
  tl_artifact* again = nullptr;
  EXPECT_EQ(tl_artifact_fallback(nullptr, artifact_.get(), &again, nullptr), TL_OK);
  tl_artifact_release(again);
  EXPECT_EQ(tl_artifact_fallback(nullptr, nullptr, &again, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_artifact_fallback(nullptr, artifact_.get(), nullptr, nullptr), TL_INVALID_ARGUMENT);

  ASSERT_EQ(tl_kernel_prepare(kernel.get(), nullptr), TL_OK);
  EXPECT_EQ(tl_kernel_form_count(kernel.get()), 5u);
  int stream = 0;
  fake().fake_capture(&stream, 1);
  tl_launch how{};
  how.stream = &stream;
  tl_error* error = nullptr;
  EXPECT_EQ(launch(kernel, odd_product_, how, &error), TL_OK) << tl_error_message(error);
  fake().fake_capture(&stream, 0);
  EXPECT_EQ(fake().fake_forbidden_calls(), 0);
}

}  // namespace
}  // namespace tilegen::test
