// What cannot be loaded or launched is said with the kernel, the limit and a way out; and what a failed
// kernel leaves.
#include "fake_machine.h"

namespace tilegen::runtime::hip {
namespace {

class HipRefusalTest : public FakeMachine {
 protected:
  static Code changed(const auto& change) {
    auto copy = std::make_shared<driver::Artifact>(*scale());
    change(*copy);
    return copy;
  }
  std::vector<Argument> arguments(int64_t rows, size_t x_rows = 8) {
    float* x = send(std::vector<float>(32 * x_rows, 1));
    float* y = send(std::vector<float>(32 * 8, -1));
    return {integer(rows), floating(2.5), address(x), address(y)};
  }
};

TEST_F(HipRefusalTest, ARefusedCodeObject) {
  const auto refused = [&](int result, const std::string& name, const std::string& hint) {
    fake().fake_fail("hipModuleLoadDataEx", result, 0, 1);
    expect_refusal(executable(scale())->prepare(), DiagCode::driver_failure,
                   "loading the code for gfx942 on hip:0 (Fake MI300X) failed: " + name, hint);
  };
  refused(209, "hipErrorNoBinaryForGpu", "compile for the target 'hip'");
  refused(218, "hipErrorInvalidKernelFile", "update ROCm, which is HIP 6.2");
  refused(303, "hipErrorSharedObjectInitFailed", "update ROCm, which is HIP 6.2");
  auto broken = executable(changed([](driver::Artifact& a) { a.code[0] = 'X'; }));
  expect_refusal(broken->prepare(), DiagCode::driver_failure, "failed: hipErrorInvalidImage");
  EXPECT_EQ(broken->prepare().error().diagnostics[0].op, "scale");
  EXPECT_TRUE(executable(scale())->prepare());  // nothing of the failures stays
}

TEST_F(HipRefusalTest, CodeForAnotherArchitecture) {
  fake().fake_set_architecture(0, "gfx90a:sramecc+:xnack-");
  expect_refusal(executable(scale())->prepare(), DiagCode::driver_failure, "hipErrorNoBinaryForGpu",
                 "compile for the target 'hip'");
}

TEST_F(HipRefusalTest, EveryStepOfALoadMayFail) {
  for (const char* function : {"hipGetDevice", "hipSetDevice", "hipModuleLoadDataEx", "hipModuleGetFunction",
                               "hipFuncGetAttribute"}) {
    fake().fake_reset();
    auto loaded = Driver::load(TILEGEN_FAKE_HIP_RUNTIME);
    ASSERT_TRUE(loaded);
    auto e = load_on_gpu(**loaded, scale(), 0);
    ASSERT_TRUE(e);
    fake().fake_fail(function, 2, 0, 1);
    expect_refusal((*e)->prepare(), DiagCode::driver_failure, "hipErrorOutOfMemory (out of memory)",
                   "free device memory");
    EXPECT_EQ(fake().fake_loaded_modules(), 0) << function;
    EXPECT_EQ(fake().fake_last_error(), 0) << function;
    EXPECT_TRUE((*e)->prepare()) << function;
    e->reset();
  }
}

TEST_F(HipRefusalTest, TooMuchSharedMemoryIsNamed) {
  fake().fake_set_attribute(74, 1000);
  expect_refusal(executable(scale())->prepare(), DiagCode::limit_memory,
                 "a block needs 1024 bytes of shared memory, hip:0 (Fake MI300X) has 1000", "smaller tiles");
}

TEST_F(HipRefusalTest, TooManyThreadsForTheCodeAreNamed) {
  auto e = executable(changed([](driver::Artifact& a) { a.kernels[0].threads = 2048; }));
  expect_refusal(e->prepare(), DiagCode::launch_limit, "a block has 2048 threads, with ", "fewer threads");
}

TEST_F(HipRefusalTest, WavesOfAnotherWidthAreNamed) {
  fake().fake_set_attribute(87, 32);
  expect_refusal(executable(scale())->prepare(), DiagCode::launch_limit,
                 "the code is for warps of 64 lanes, those of hip:0 (Fake MI300X) have 32",
                 "compile for 'hip'");
}

// A grid's threads along x are counted in 32 bits: fewer blocks than the device's limit says.
TEST_F(HipRefusalTest, AGridBeyondTheDeviceIsNamed) {
  fake().fake_run_nothing(1);
  auto e = executable(scale());
  const auto with = [&](int64_t blocks) {
    return std::vector{integer(8 * blocks), floating(1), address(reinterpret_cast<void*>(4096)),
                       address(reinterpret_cast<void*>(8192))};
  };
  constexpr int64_t kMost = 0xffffffff / 64;
  EXPECT_TRUE(e->launch(with(kMost), {}));
  EXPECT_EQ(last().grid[0], kMost);
  expect_refusal(e->launch(with(kMost + 1), {}), DiagCode::launch_limit,
                 "the grid has 67108864 blocks along x, hip:0 (Fake MI300X) launches at most 67108863",
                 "larger tiles");
}

TEST_F(HipRefusalTest, ThreadsThatAreNoWholeWavesAreRefusedWhenCompiled) {
  std::string text = kScale;
  text.replace(text.find("threads 64"), 10, "threads 96");
  auto program = ir::parse_program(text, "p.tl", Limits());
  ASSERT_TRUE(program);
  const auto refused = driver::compile(std::make_shared<const ir::Program>(std::move(*program)),
                                       *target::find_target("gfx942"), {});
  ASSERT_FALSE(refused);
  const Diagnostic& d = refused.error().diagnostics.at(0);
  EXPECT_NE(d.to_text().find("64"), std::string::npos) << d.to_text();
  EXPECT_FALSE(d.hint.empty());
}

TEST_F(HipRefusalTest, TensorsMustLieOnTheDevice) {
  fake().fake_set_devices(2);
  fake().fake_run_nothing(1);
  auto e = executable(scale(), 1);
  const int64_t shape[] = {8, 32};
  const auto both = [&](int32_t type, int32_t id) {
    Argument x;
    x.kind = Argument::Kind::tensor;
    x.type = ir::DType::f32;
    x.bits = 4096;
    x.shape = shape;
    x.place = {type, id};
    Argument y = x;
    y.place = {MemoryPlace::rocm, 1};
    return e->launch(std::vector{floating(1), x, y}, {});
  };
  EXPECT_TRUE(both(MemoryPlace::rocm, 1));
  EXPECT_TRUE(both(MemoryPlace::rocm_host, 0));
  expect_refusal(both(MemoryPlace::rocm, 0), DiagCode::launch_device,
                 "tensor 'X' lives on hip:0, the kernel runs on hip:1", "copy the tensor to that device");
  expect_refusal(both(MemoryPlace::cpu, 0), DiagCode::launch_device, "tensor 'X' lives on the host");
  expect_refusal(both(MemoryPlace::cuda, 1), DiagCode::launch_device, "tensor 'X' lives on cuda:1");
  expect_refusal(both(MemoryPlace::cuda_managed, 1), DiagCode::launch_device, "managed CUDA memory");
  EXPECT_EQ(fake().fake_launches(), 2);
}

// X is shorter than the program is told: the code reads beyond the memory.
TEST_F(HipRefusalTest, AFailedKernelIsReportedOnceAndThenTheDeviceIsLost) {
  auto e = executable(scale()), bystander = executable(scale());
  const auto too_few = arguments(8, 4);
  ASSERT_TRUE(e->launch(too_few, {}));
  EXPECT_NE(std::string(fake().fake_fault()), "");
  const Device& device = driver().devices()[0];
  expect_refusal(
      gpu::wait(driver(), device, nullptr), DiagCode::context_broken,
      "a kernel failed on hip:0 (Fake MI300X): hipErrorIllegalAddress (an illegal memory access was "
      "encountered), noticed when waiting for the work on hip:0 (Fake MI300X); the last kernel launched "
      "by this library was 'scale",
      "rocgdb");
  const int launches = fake().fake_calls("hipModuleLaunchKernel");
  expect_refusal(e->launch(too_few, {}), DiagCode::context_broken,
                 "the context on hip:0 (Fake MI300X) is broken since hipErrorIllegalAddress",
                 "a HIP context does not recover");
  expect_refusal(bystander->prepare(), DiagCode::context_broken, "is broken since");
  EXPECT_EQ(fake().fake_calls("hipModuleLaunchKernel"), launches);  // the runtime is left alone
}

TEST_F(HipRefusalTest, AnOrdinaryFailureBreaksNothing) {
  auto e = executable(scale());
  const auto args = arguments(8);
  fake().fake_fail("hipModuleLaunchKernel", 701, 0, 1);
  expect_refusal(e->launch(args, {}), DiagCode::driver_failure,
                 "launching 'scale' on hip:0 (Fake MI300X) failed: hipErrorLaunchOutOfResources",
                 "fewer threads");
  fake().fake_fail("hipModuleLaunchKernel", 9, 0, 1);
  expect_refusal(e->launch(args, {}), DiagCode::driver_failure, "hipErrorInvalidConfiguration",
                 "smaller dimensions");
  EXPECT_TRUE(e->launch(args, {}));
}

}  // namespace
}  // namespace tilegen::runtime::hip
