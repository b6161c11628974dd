// A client of the C interface on the stand-in for the driver: a program, its compilation and loads, and
// two devices.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "../capi/scope.h"
#include "fake_control.h"

namespace tilegen::test {

inline FakeCuda& fake() {
  static FakeCuda controls(TILEGEN_FAKE_CUDA_DRIVER);
  return controls;
}

inline constexpr char kScale[] =
    "tl 1 program scaling\n"
    "dim m\n"
    "scalar s: f32\n"
    "tensor X: f32[m, 32] readonly\n"
    "tensor Y: f32[m, 32]\n"
    "kernel scale grid(b: ceildiv(m, 8)) {\n"
    "  alloc x: fragment f32[8, 32]\n"
    "  copy X[b * 8 :+ 8, 0 :+ 32] -> x\n"
    "  parallel i, j in 8, 32 {\n"
    "    x[i, j] = x[i, j] * s\n"
    "  }\n"
    "  copy x -> Y[b * 8 :+ 8, 0 :+ 32]\n"
    "}\n";

// What the kernel computes, from its parameters m, s, X, Y.
inline void scale(const FakeLaunch* launch) {
  float s = 0;
  std::memcpy(&s, &launch->values[1], sizeof s);
  const auto* x = reinterpret_cast<const float*>(launch->values[2]);
  auto* y = reinterpret_cast<float*>(launch->values[3]);
  for (uint64_t i = 0; i < launch->values[0] * 32; ++i) y[i] = x[i] * s;
}

inline Program parse(const Context& context, const char* text = kScale) {
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_program_parse(context.get(), text, std::strlen(text), "p.tl", &program, &error), TL_OK)
      << tl_error_message(error);
  return Program(program);
}

inline Artifact compile(const Context& context, const Program& program, const char* name) {
  tl_target* target = nullptr;
  tl_artifact* artifact = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_target_parse(name, &target, &error), TL_OK) << tl_error_message(error);
  const Target owned(target);
  EXPECT_EQ(tl_compile(context.get(), program.get(), target, nullptr, &artifact, &error), TL_OK)
      << tl_error_message(error);
  return Artifact(artifact);
}

// Status of a load, with the message.
inline tl_status load(const Context& context, const Artifact& artifact, size_t ordinal, Kernel* kernel,
                      std::string* message = nullptr) {
  tl_kernel* made = nullptr;
  tl_error* error = nullptr;
  const tl_status status = tl_kernel_load(context.get(), artifact.get(), ordinal, &made, &error);
  if (kernel) kernel->reset(made);
  if (message) *message = tl_error_message(error);
  tl_error_release(error);
  return status;
}

// Devices are looked at once in a process: two of them, of which the second is older.
class Cuda : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    fake().fake_set_devices(2);
    fake().fake_set_capability(1, 8, 9);
    ASSERT_EQ(tl_device_count(), 3u);
  }
  void SetUp() override {
    fake().fake_fail("cuLaunchKernel", 0, 0, 0);
    fake().fake_register("scale", scale);
  }
  Context context_ = make_context();
};

}  // namespace tilegen::test
