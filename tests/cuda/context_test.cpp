// Which context a launch goes to, when the code is loaded there, and what a failed kernel does to it.
#include <algorithm>
#include <atomic>
#include <thread>

#include "fake_machine.h"
#include "support/diag_codes.h"

namespace tilegen::runtime::cuda {
namespace {

class ContextTest : public FakeMachine {};

const FakeLaunch& last_launch() { return *fake().fake_launch(fake().fake_launches() - 1); }

TEST_F(ContextTest, WithoutAContextThePrimaryOneIsUsedAndLeft) {
  auto e = executable(one_kernel());
  EXPECT_EQ(fake().fake_calls("cuModuleLoadDataEx"), 0);  // lazily
  ASSERT_TRUE(e->launch(arguments(8), {}));
  EXPECT_EQ(fake().fake_current(), nullptr);
  ASSERT_TRUE(e->launch(arguments(8), {}));
  EXPECT_EQ(fake().fake_calls("cuDevicePrimaryCtxRetain"), 1);
  EXPECT_EQ(fake().fake_calls("cuModuleLoadDataEx"), 1);
  EXPECT_EQ(fake().fake_launches(), 2);
}

// A call that fails is reported by tools that watch the driver, whatever the library makes of it.
TEST_F(ContextTest, WithoutAContextNoCallThatNeedsOneIsMade) {
  LaunchOptions on_a_stream;
  on_a_stream.stream = reinterpret_cast<Stream>(uintptr_t{0x1000});
  for (const bool prepared : {false, true})
    for (const LaunchOptions& options : {LaunchOptions{}, on_a_stream}) {
      auto e = executable(one_kernel());
      if (prepared) {
        ASSERT_TRUE(e->prepare());
      }
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(e->launch(arguments(8), options));
      ASSERT_TRUE(e->info());
      e.reset();
      EXPECT_EQ(fake().fake_current(), nullptr);
      EXPECT_EQ(fake().fake_calls_without_context(), 0) << prepared;
    }
}

TEST_F(ContextTest, TheCurrentContextIsUsed) {
  void* mine = fake().fake_make_context(0);
  fake().fake_set_current(mine);
  auto e = executable(one_kernel());
  ASSERT_TRUE(e->launch(arguments(8), {}));
  EXPECT_EQ(last_launch().context, mine);
  EXPECT_EQ(fake().fake_calls("cuDevicePrimaryCtxRetain"), 0);
  EXPECT_EQ(fake().fake_calls("cuCtxPushCurrent_v2"), 1);  // by the worker that loads
  // Another context of the device gets its own copy of the code.
  void* other = fake().fake_make_context(0);
  fake().fake_set_current(other);
  ASSERT_TRUE(e->launch(arguments(8), {}));
  EXPECT_EQ(last_launch().context, other);
  EXPECT_EQ(fake().fake_calls("cuModuleLoadDataEx"), 2);
  fake().fake_set_current(mine);
  ASSERT_TRUE(e->launch(arguments(8), {}));
  EXPECT_EQ(fake().fake_calls("cuModuleLoadDataEx"), 2);
  EXPECT_EQ(fake().fake_calls("cuCtxPushCurrent_v2"), 2);
}

TEST_F(ContextTest, TheContextOfAnotherDeviceIsLeftAlone) {
  fake().fake_set_devices(2);
  void* mine = fake().fake_make_context(0);
  fake().fake_set_current(mine);
  auto e = executable(one_kernel(), 1);
  ASSERT_TRUE(e->launch(arguments(8), {}));
  ASSERT_TRUE(e->launch(arguments(8), {}));
  EXPECT_NE(last_launch().context, mine);
  EXPECT_EQ(fake().fake_current(), mine);
  EXPECT_EQ(fake().fake_calls("cuModuleLoadDataEx"), 1);
}

TEST_F(ContextTest, TwoDevicesEachHaveTheirs) {
  fake().fake_set_devices(2);
  auto artifact = one_kernel();
  auto first = executable(artifact, 0), second = executable(artifact, 1);
  ASSERT_TRUE(first->launch(arguments(8), {}));
  void* const on_first = last_launch().context;
  ASSERT_TRUE(second->launch(arguments(8), {}));
  EXPECT_NE(last_launch().context, on_first);
}

// A context that is made where a destroyed one stood has another number, and none of its code.
TEST_F(ContextTest, ADestroyedContextIsNotMistaken) {
  auto e = executable(one_kernel());
  void* first = fake().fake_make_context(0);
  fake().fake_set_current(first);
  ASSERT_TRUE(e->launch(arguments(8), {}));
  fake().fake_destroy_context(first);
  void* second = fake().fake_make_context(0);
  fake().fake_set_current(second);
  ASSERT_TRUE(e->launch(arguments(8), {}));
  EXPECT_EQ(last_launch().context, second);
  e.reset();  // unloads from the living one only
  EXPECT_EQ(fake().fake_calls("cuModuleUnload"), 1);
  EXPECT_EQ(fake().fake_loaded_modules(), 1);
}

// A driver that does not number contexts tells them by their handles.
TEST_F(ContextTest, OldDriversTellContextsByTheirHandles) {
  FakeCuda old(TILEGEN_FAKE_CUDA_OLD);
  old.fake_reset();
  auto loaded = Driver::load(TILEGEN_FAKE_CUDA_OLD);
  ASSERT_TRUE(loaded);
  auto e = load_on_gpu(**loaded, one_kernel(), 0);
  ASSERT_TRUE(e);
  void* const contexts[] = {old.fake_make_context(0), nullptr, old.fake_make_context(0)};
  for (int round = 0; round < 2; ++round)
    for (void* context : contexts) {
      old.fake_set_current(context);
      ASSERT_TRUE((*e)->launch(arguments(8), {}));
      void* const used = old.fake_launch(old.fake_launches() - 1)->context;
      EXPECT_NE(used, nullptr);
      EXPECT_TRUE(!context || used == context);
      EXPECT_EQ(old.fake_current(), context);
    }
  EXPECT_EQ(old.fake_calls("cuModuleLoadDataEx"), 3);
  old.fake_set_current(nullptr);
}

// Threads with and without a current context in turn, each in its own.
TEST_F(ContextTest, ThreadsOfDifferentContexts) {
  auto e = executable(one_kernel());
  ASSERT_TRUE(e->prepare());
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, own = t % 2 ? fake().fake_make_context(0) : nullptr] {
      fake().fake_set_current(own);
      for (int i = 0; i < 200; ++i)
        if (!e->launch(arguments(8), {}) || fake().fake_current() != own) failed.fetch_add(1);
      fake().fake_set_current(nullptr);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_EQ(fake().fake_launches(), 800);
  EXPECT_EQ(fake().fake_calls("cuModuleLoadDataEx"), 3);
}

TEST_F(ContextTest, ReleaseUnloadsEverywhere) {
  auto e = executable(one_kernel());
  ASSERT_TRUE(e->prepare());
  fake().fake_set_current(fake().fake_make_context(0));
  ASSERT_TRUE(e->prepare());
  EXPECT_EQ(fake().fake_loaded_modules(), 2);
  e.reset();
  EXPECT_EQ(fake().fake_loaded_modules(), 0);
}

TEST_F(ContextTest, ConcurrentFirstLaunchesLoadOnce) {
  fake().fake_slow_load(30);
  auto e = executable(one_kernel());
  std::atomic<int> failed{0}, ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      ready.fetch_add(1);
      while (ready.load() < 8) std::this_thread::yield();
      for (int i = 0; i < 20; ++i)
        if (!e->launch(arguments(8), {})) failed.fetch_add(1);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failed.load(), 0);
  EXPECT_EQ(fake().fake_calls("cuModuleLoadDataEx"), 1);
  EXPECT_EQ(fake().fake_launches(), 160);
}

TEST_F(ContextTest, ARejectedModuleBringsTheCompilersWords) {
  fake().fake_fail("cuModuleLoadDataEx", 218, 0, 1);
  fake().fake_set_logs("", "ptxas application ptx input, line 7; fatal : Parsing error near 'bra'\n");
  auto e = executable(one_kernel());
  expect_refusal(e->launch(arguments(8), {}), DiagCode::driver_failure,
                 "loading the code for sm_80 on cuda:0 (Fake H200) failed: CUDA_ERROR_INVALID_PTX (a PTX JIT "
                 "compilation "
                 "failed); the driver's compiler says: ptxas application ptx input, line 7; fatal : Parsing "
                 "error near 'bra'",
                 "compile for the target 'cuda'");
  EXPECT_EQ(e->load_log(), "");
  EXPECT_TRUE(e->launch(arguments(8), {}));  // nothing of the failure stays
}

TEST_F(ContextTest, ATooNewPtxSaysWhatTheDriverSupports) {
  fake().fake_fail("cuModuleLoadDataEx", 222, 0, -1);
  expect_refusal(executable(one_kernel())->prepare(), DiagCode::driver_failure, "UNSUPPORTED_PTX_VERSION",
                 "which supports CUDA 12.8");
}

TEST_F(ContextTest, EveryStepOfALoadMayFail) {
  for (const char* function : {"cuCtxGetCurrent", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2",
                               "cuModuleGetFunction", "cuFuncGetAttribute", "cuFuncSetAttribute"}) {
    fake().fake_reset();
    ArtifactBuilder b;
    b.kernel("scale").arena_bytes = 100 << 10;
    auto loaded = Driver::load(TILEGEN_FAKE_CUDA_DRIVER);
    ASSERT_TRUE(loaded);
    auto e = load_on_gpu(**loaded, b.done(), 0);
    ASSERT_TRUE(e);
    fake().fake_fail(function, 2, 0, 1);
    expect_refusal((*e)->prepare(), DiagCode::driver_failure, "CUDA_ERROR_OUT_OF_MEMORY (out of memory)",
                   "free device memory");
    EXPECT_EQ(fake().fake_loaded_modules(), 0) << function;
    EXPECT_EQ(fake().fake_current(), nullptr) << function;
    EXPECT_TRUE((*e)->prepare()) << function;
    e->reset();
  }
}

TEST_F(ContextTest, AFailedKernelIsReportedOnceAndThenTheContextIsBroken) {
  auto artifact = one_kernel();
  auto e = executable(artifact), bystander = executable(artifact);
  ASSERT_TRUE(e->launch(arguments(8), {}));
  ASSERT_TRUE(bystander->prepare());
  fake().fake_fail("cuLaunchKernel", 700, 0, -1);
  const Checked first = e->launch(arguments(8), {});
  expect_refusal(
      first, DiagCode::context_broken,
      "a kernel failed on cuda:0 (Fake H200): CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was "
      "encountered), noticed when launching 'scale' on cuda:0 (Fake H200); the last kernel launched by this "
      "library was 'scale'",
      "compute-sanitizer");
  EXPECT_EQ(first.error().diagnostics[0].op, "scale");
  const int calls = fake().fake_calls("cuLaunchKernel");
  expect_refusal(e->launch(arguments(8), {}), DiagCode::context_broken,
                 "the context on cuda:0 (Fake H200) is broken since CUDA_ERROR_ILLEGAL_ADDRESS (an illegal "
                 "memory access "
                 "was encountered) after kernel 'scale'",
                 "start the process anew");
  expect_refusal(bystander->launch(arguments(8), {}), DiagCode::context_broken, "is broken since");
  expect_refusal(executable(artifact)->prepare(), DiagCode::context_broken, "is broken since");
  EXPECT_EQ(fake().fake_calls("cuLaunchKernel"), calls);  // the driver is left alone
  // Another context still works.
  fake().fake_fail("cuLaunchKernel", 0, 0, 0);
  fake().fake_set_current(fake().fake_make_context(0));
  EXPECT_TRUE(e->launch(arguments(8), {}));
}

TEST_F(ContextTest, AnOrdinaryFailureBreaksNothing) {
  auto e = executable(one_kernel());
  fake().fake_fail("cuLaunchKernel", 701, 0, 1);
  expect_refusal(e->launch(arguments(8), {}), DiagCode::driver_failure,
                 "launching 'scale' on cuda:0 (Fake H200) failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
                 "fewer threads");
  fake().fake_fail("cuLaunchKernel", 400, 0, 1);
  expect_refusal(e->launch(arguments(8), {}), DiagCode::driver_failure, "CUDA_ERROR_INVALID_HANDLE",
                 "use a stream");
  EXPECT_TRUE(e->launch(arguments(8), {}));
}

TEST_F(ContextTest, ACaptureNeedsAPreparedKernel) {
  int token = 0;
  LaunchOptions on_stream;
  on_stream.stream = &token;
  auto e = executable(one_kernel());
  fake().fake_capture(&token, 1);
  expect_refusal(e->launch(arguments(8), on_stream), DiagCode::driver_failure,
                 "the stream is being captured and the kernel is not loaded", "tl_kernel_prepare");
  void* const mine = fake().fake_make_context(0);
  fake().fake_set_current(mine);
  expect_refusal(e->launch(arguments(8), {}), DiagCode::driver_failure, "the stream is being captured");
  fake().fake_set_current(nullptr);
  fake().fake_capture(nullptr, 0);
  EXPECT_EQ(fake().fake_forbidden_calls(), 0);  // the capture was not spoilt
  ASSERT_TRUE(e->prepare());
  fake().fake_capture(&token, 1);
  ASSERT_TRUE(e->launch(arguments(8), on_stream));
  EXPECT_EQ(fake().fake_forbidden_calls(), 0);
  EXPECT_EQ(last_launch().stream, &token);
}

}  // namespace
}  // namespace tilegen::runtime::cuda
