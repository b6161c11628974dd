// A prepared launch through the C interface allocates nothing: every malloc of the process passes here.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "../capi/scope.h"
#include "capi/dlpack.h"
#include "fake_control.h"

extern "C" void* __libc_malloc(size_t);

namespace {
thread_local long t_mallocs = 0;
}

extern "C" void* malloc(size_t size) {
  ++t_mallocs;
  return __libc_malloc(size);
}

namespace tilegen::test {
namespace {

constexpr char kAdd[] =
    "tl 1 program adding\n"
    "dim m\ndim n\n"
    "tensor A: f32[m, n] readonly\ntensor B: f32[m, n] readonly\ntensor C: f32[m, n]\n"
    "kernel add grid(i: ceildiv(m, 8), j: ceildiv(n, 32)) {\n"
    "  parallel r, c in 8, 32 {\n"
    "    C[i * 8 + r, j * 32 + c] = A[i * 8 + r, j * 32 + c] + B[i * 8 + r, j * 32 + c]\n"
    "  }\n"
    "}\n";

// The driver's own call, as a client would make it.
double raw_launch_ns(int launches) {
  void* driver = dlopen(TILEGEN_FAKE_CUDA_DRIVER, RTLD_NOW | RTLD_LOCAL);
  const auto find = [&](const char* name, auto*& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(driver, name));
  };
  int (*retain)(void**, int) = nullptr;
  int (*push)(void*) = nullptr;
  int (*pop)(void**) = nullptr;
  int (*load)(void**, const void*, unsigned, int*, void**) = nullptr;
  int (*get)(void**, void*, const char*) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                void**) = nullptr;
  find("cuDevicePrimaryCtxRetain", retain), find("cuCtxPushCurrent_v2", push),
      find("cuCtxPopCurrent_v2", pop);
  find("cuModuleLoadDataEx", load), find("cuModuleGetFunction", get), find("cuLaunchKernel", launch);
  void *context = nullptr, *module = nullptr, *function = nullptr;
  retain(&context, 100);
  push(context);
  load(&module, ".version 7.8\n.visible .entry k(.param .u64 p, .param .u64 q) { ret; }", 0, nullptr,
       nullptr);
  get(&function, module, "k");
  uint64_t values[2] = {1, 2};
  void* parameters[2] = {&values[0], &values[1]};
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < launches; ++i) launch(function, 1, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr);
  const double ns =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  pop(&context);
  return ns / launches;
}

class Cost : public testing::Test {
 protected:
  void SetUp() override {
    context_ = make_context();
    tl_program* program = nullptr;
    tl_target* target = nullptr;
    tl_artifact* artifact = nullptr;
    tl_kernel* kernel = nullptr;
    tl_error* error = nullptr;
    ASSERT_EQ(tl_program_parse(context_.get(), kAdd, sizeof kAdd - 1, "p.tl", &program, &error), TL_OK)
        << tl_error_message(error);
    const Program owned_program(program);
    ASSERT_EQ(tl_target_parse("cuda", &target, &error), TL_OK) << tl_error_message(error);
    const Target owned_target(target);
    ASSERT_EQ(tl_compile(context_.get(), program, target, nullptr, &artifact, &error), TL_OK)
        << tl_error_message(error);
    const Artifact owned_artifact(artifact);
    ASSERT_EQ(tl_kernel_load(context_.get(), artifact, TL_DEVICE_ANY, &kernel, &error), TL_OK)
        << tl_error_message(error);
    kernel_.reset(kernel);
    ASSERT_EQ(tl_kernel_prepare(kernel, &error), TL_OK) << tl_error_message(error);
  }

  // Allocations of one launch, and the time of one in a row of many.
  template <class Launch>
  void measure(const char* what, Launch&& launch) {
    ASSERT_EQ(launch(), TL_OK);
    const long before = t_mallocs;
    ASSERT_EQ(launch(), TL_OK);
    EXPECT_EQ(t_mallocs, before) << what;
    constexpr int kLaunches = 20000;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) launch();
    const double ns =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
        kLaunches;
    std::printf("%s: %.0f ns a launch on the stand-in driver, whose own call takes %.0f ns\n", what, ns,
                raw_launch_ns(kLaunches));
  }

  Context context_;
  Kernel kernel_;
};

TEST_F(Cost, RawPointers) {
  const tl_arg args[] = {{TL_ARG_I64, 0, 64},       {TL_ARG_I64, 0, 96},       {TL_ARG_POINTER, 0, 4096},
                         {TL_ARG_POINTER, 0, 8192}, {TL_ARG_POINTER, 0, 16384}};
  measure("raw pointers", [&] { return tl_kernel_launch(kernel_.get(), nullptr, args, 5, nullptr); });
}

TEST_F(Cost, CheckedTensors) {
  int64_t shape[2] = {64, 96}, strides[2] = {96, 1};
  DLTensor tensors[3];
  const DLTensor* list[3];
  for (size_t i = 0; i < 3; ++i) {
    tensors[i] = {reinterpret_cast<void*>(4096 * (i + 1)), {2, 0}, 2, {2, 32, 1}, shape, strides, 0};
    list[i] = &tensors[i];
  }
  const tl_launch launch{sizeof(tl_launch), 0, nullptr};
  measure("three tensors", [&] { return tl_kernel_launch_dlpack(kernel_.get(), &launch, list, 3, nullptr); });
}

}  // namespace
}  // namespace tilegen::test
