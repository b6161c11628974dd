// HIP through the C interface, on the stand-in for the runtime that TILEGEN_HIP_RUNTIME names. NoRuntime
// tests run in a process of their own, where there is none.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "../capi/scope.h"
#include "capi/dlpack.h"
#include "fake_hip.h"

namespace tilegen::test {
namespace {

FakeHip& fake() {
  static FakeHip controls(TILEGEN_FAKE_HIP_RUNTIME);
  return controls;
}

constexpr char kScale[] =
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

Program parse(const Context& context, const char* text = kScale) {
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  EXPECT_EQ(tl_program_parse(context.get(), text, std::strlen(text), "p.tl", &program, &error), TL_OK)
      << tl_error_message(error);
  return Program(program);
}

Artifact compile(const Context& context, const Program& program, const char* name) {
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
tl_status load(const Context& context, const Artifact& artifact, size_t ordinal, Kernel* kernel,
               std::string* message = nullptr) {
  tl_kernel* made = nullptr;
  tl_error* error = nullptr;
  const tl_status status = tl_kernel_load(context.get(), artifact.get(), ordinal, &made, &error);
  if (kernel) kernel->reset(made);
  if (message) *message = tl_error_message(error);
  tl_error_release(error);
  return status;
}

// Devices are looked at once in a process: one of each architecture, and one that has no target.
class Hip : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    fake().fake_set_devices(3);
    fake().fake_set_architecture(1, "gfx90a:sramecc+:xnack-");
    fake().fake_set_architecture(2, "gfx1100");
    ASSERT_EQ(tl_device_count(), 4u);
  }
  Context context_ = make_context();
};

TEST_F(Hip, DevicesComeBehindTheHost) {
  tl_device_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(tl_device_describe(0, &info), TL_OK);
  EXPECT_EQ(info.kind, static_cast<tl_device_kind>(TL_DEVICE_HOST));
  ASSERT_EQ(tl_device_describe(2, &info), TL_OK);
  EXPECT_EQ(info.kind, static_cast<tl_device_kind>(TL_DEVICE_HIP));
  EXPECT_STREQ(info.name, "Fake MI250X");
  EXPECT_STREQ(info.target, "gfx90a");
  EXPECT_STREQ(info.features, "gfx90a:sramecc+:xnack-");
  EXPECT_EQ(info.cores, 304u);
  EXPECT_EQ(info.memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ(info.driver_ordinal, 1u);
  EXPECT_EQ(info.driver_version, 6020u);
  ASSERT_EQ(tl_device_describe(3, &info), TL_OK);
  EXPECT_STREQ(info.target, "");
}

TEST_F(Hip, TargetsOfThisMachine) {
  const std::pair<const char*, const char*> kNames[] = {
      {"hip", "gfx942"}, {"hip:0", "gfx942"}, {"hip:1", "gfx90a"}};
  for (const auto& [name, expected] : kNames) {
    tl_target* target = nullptr;
    ASSERT_EQ(tl_target_parse(name, &target, nullptr), TL_OK) << name;
    EXPECT_STREQ(tl_target_name(target), expected);
    tl_target_release(target);
  }
  tl_target* best = nullptr;
  ASSERT_EQ(tl_target_best(context_.get(), &best, nullptr), TL_OK);
  EXPECT_STREQ(tl_target_name(best), "gfx942");
  tl_target_release(best);
  tl_error* error = nullptr;
  EXPECT_EQ(tl_target_parse("hip:2", &best, &error), TL_DRIVER);
  EXPECT_NE(
      std::string(tl_error_message(error)).find("has architecture gfx1100, supported are gfx942, gfx90a"),
      std::string::npos)
      << tl_error_message(error);
  tl_error_release(error);
  EXPECT_EQ(tl_target_parse("hip:3", &best, &error), TL_DRIVER);
  EXPECT_NE(std::string(tl_error_message(error)).find("there is no HIP device 3, the driver finds 3"),
            std::string::npos)
      << tl_error_message(error);
  tl_error_release(error);
  EXPECT_EQ(tl_target_parse("hip:x", &best, nullptr), TL_UNKNOWN_TARGET);
  EXPECT_EQ(tl_target_parse("hipster", &best, nullptr), TL_UNKNOWN_TARGET);
  EXPECT_EQ(tl_target_parse("cuda", &best, nullptr), TL_DRIVER);
}

TEST_F(Hip, FromTextToResults) {
  const Program program = parse(context_);
  const Artifact artifact = compile(context_, program, "hip");
  Kernel kernel;
  ASSERT_EQ(load(context_, artifact, TL_DEVICE_ANY, &kernel), TL_OK);
  std::vector<float> host(5 * 32);
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i);
  const size_t bytes = host.size() * sizeof(float);
  void *x = nullptr, *y = nullptr;
  ASSERT_EQ(tl_device_allocate(1, bytes, &x, nullptr), TL_OK);
  ASSERT_EQ(tl_device_allocate(1, bytes, &y, nullptr), TL_OK);
  ASSERT_EQ(tl_device_copy(1, x, host.data(), bytes, nullptr, nullptr), TL_OK);
  int64_t shape[2] = {5, 32};
  const auto tensor = [&](void* data, int32_t device) {
    return DLTensor{data, {device, 0}, 2, {2, 32, 1}, shape, nullptr, 0};
  };
  DLTensor dx = tensor(x, 10), dy = tensor(y, 10);  // kDLROCM
  const auto pass = [](const DLTensor& t) {
    return tl_arg{TL_ARG_TENSOR, 0, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&t))};
  };
  const double factor = 2.5;
  tl_arg s{TL_ARG_F64, 0, 0};
  std::memcpy(&s.payload, &factor, sizeof factor);
  int stream = 0;
  tl_launch on_stream{};
  on_stream.struct_size = sizeof on_stream;
  on_stream.stream = &stream;
  const tl_arg args[] = {s, pass(dx), pass(dy)};
  tl_error* error = nullptr;
  ASSERT_EQ(tl_kernel_launch(kernel.get(), &on_stream, args, 3, &error), TL_OK) << tl_error_message(error);
  EXPECT_EQ(fake().fake_launch(fake().fake_launches() - 1)->stream, &stream);
  ASSERT_EQ(tl_device_wait(1, &stream, nullptr), TL_OK);
  std::vector<float> result(host.size());
  ASSERT_EQ(tl_device_copy(1, result.data(), y, bytes, nullptr, nullptr), TL_OK);
  for (size_t i = 0; i < host.size(); ++i) ASSERT_EQ(result[i], 2.5f * host[i]) << i;

  dx = tensor(x, 2);  // kDLCUDA
  EXPECT_EQ(tl_kernel_launch(kernel.get(), nullptr, args, 3, &error), TL_LAUNCH_ARGUMENT);
  EXPECT_NE(std::string(tl_error_message(error)).find("tensor 'X' lives on cuda:0, the kernel runs on hip:0"),
            std::string::npos)
      << tl_error_message(error);
  tl_error_release(error);
  EXPECT_EQ(tl_device_free(1, x, nullptr), TL_OK);
  EXPECT_EQ(tl_device_free(1, y, nullptr), TL_OK);
  EXPECT_EQ(fake().fake_allocations(), 0);
}

// Before the load, from the code; of each kind of register as the target has them.
TEST_F(Hip, RegistersAreTold) {
  const Program program = parse(context_);
  const Artifact artifact = compile(context_, program, "hip");
  Kernel kernel;
  ASSERT_EQ(load(context_, artifact, TL_DEVICE_ANY, &kernel), TL_OK);
  tl_kernel_info info{};
  info.struct_size = sizeof info;
  for (const int32_t measured : {0, 1}) {
    ASSERT_EQ(tl_kernel_describe(kernel.get(), 0, &info, nullptr), TL_OK);
    EXPECT_EQ(info.measured, measured);
    EXPECT_GT(info.registers, 0);
    EXPECT_EQ(info.accumulation_registers, 0);  // no matrix sums, no spills
    EXPECT_GE(info.scalar_registers, 8);        // VCC and addresses of the arguments at least
    EXPECT_EQ(info.local_bytes, 0);
    ASSERT_EQ(tl_kernel_prepare(kernel.get(), nullptr), TL_OK);
  }
}

// The code runs, and what it tells is read from the device's memory.
TEST_F(Hip, ReportsComeFromTheDevice) {
  const Program program = parse(context_,
                                "tl 1 program reports\n"
                                "dim m\n"
                                "tensor X: f32[m, 32] readonly\n"
                                "kernel k grid(b: ceildiv(m, 8)) {\n"
                                "  print \"block\", b * 2\n"
                                "  parallel i, j in 8, 32 {\n"
                                "    assert X[b * 8 + i, j] < 200, \"small numbers\"\n"
                                "    if i == 1 and j == 31 { print \"x\", X[b * 8 + i, j], i }\n"
                                "  }\n"
                                "}\n");
  const Artifact artifact = compile(context_, program, "hip");
  Kernel kernel;
  ASSERT_EQ(load(context_, artifact, TL_DEVICE_ANY, &kernel), TL_OK);
  std::vector<float> host(10 * 32);
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i);
  void* x = nullptr;
  ASSERT_EQ(tl_device_allocate(1, host.size() * sizeof(float), &x, nullptr), TL_OK);
  ASSERT_EQ(tl_device_copy(1, x, host.data(), host.size() * sizeof(float), nullptr, nullptr), TL_OK);
  std::vector<std::string> lines;
  const auto keep = [](void* user, const char* line) {
    static_cast<std::vector<std::string>*>(user)->push_back(line);
  };
  ASSERT_EQ(tl_context_set_print(context_.get(), keep, nullptr, &lines, nullptr), TL_OK);
  tl_launch launch{};
  launch.struct_size = sizeof launch;
  launch.context = context_.get();
  tl_arg args[] = {{TL_ARG_I64, 0, 10}, {TL_ARG_POINTER, 0, reinterpret_cast<uint64_t>(x)}};
  tl_error* error = nullptr;
  EXPECT_EQ(tl_kernel_launch(kernel.get(), &launch, args, 2, &error), TL_ASSERTION);
  EXPECT_NE(std::string(tl_error_message(error)).find("'small numbers' does not hold at b = 0, i = 6, j = 8"),
            std::string::npos)
      << tl_error_message(error);
  tl_error_release(error);
  const std::vector<std::string> expected = {"block: 0  (b = 0)", "x: 63, 1  (b = 0, i = 1, j = 31)",
                                             "block: 2  (b = 1)", "x: 319, 1  (b = 1, i = 1, j = 31)"};
  EXPECT_EQ(lines, expected);
  args[0].payload = 6;  // nothing of the launch before is left
  EXPECT_EQ(tl_kernel_launch(kernel.get(), &launch, args, 2, &error), TL_OK) << tl_error_message(error);
  EXPECT_EQ(lines.size(), 6u);
  EXPECT_EQ(tl_device_free(1, x, nullptr), TL_OK);
  kernel.reset();
  EXPECT_EQ(fake().fake_allocations(), 0);
}

TEST_F(Hip, ArtifactsFitDevicesOfTheirArchitecture) {
  const Program program = parse(context_);
  const Artifact host = compile(context_, program, "host"), gfx942 = compile(context_, program, "gfx942"),
                 gfx90a = compile(context_, program, "gfx90a"), sm80 = compile(context_, program, "sm_80");
  std::string message;
  Kernel kernel;
  EXPECT_EQ(load(context_, gfx942, 1, &kernel), TL_OK);
  EXPECT_EQ(load(context_, gfx90a, 2, &kernel), TL_OK);
  EXPECT_EQ(load(context_, gfx90a, TL_DEVICE_ANY, &kernel), TL_OK);
  EXPECT_EQ(load(context_, gfx90a, 1, nullptr, &message), TL_DRIVER);
  EXPECT_NE(message.find("the artifact is for gfx90a, device 1 is Fake MI300X (gfx942:sramecc+:xnack-)"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("compile for 'gfx942'"), std::string::npos) << message;
  EXPECT_EQ(load(context_, gfx942, 3, nullptr, &message), TL_DRIVER);
  EXPECT_NE(message.find("compile for 'host'"), std::string::npos) << message;
  EXPECT_EQ(load(context_, gfx942, 0, nullptr, &message), TL_DRIVER);
  EXPECT_NE(message.find("device 0 is the host"), std::string::npos) << message;
  EXPECT_EQ(load(context_, gfx942, 4, nullptr, &message), TL_DRIVER);
  EXPECT_EQ(load(context_, host, 1, nullptr, &message), TL_DRIVER);
  EXPECT_EQ(load(context_, sm80, 1, nullptr, &message), TL_DRIVER);
  EXPECT_EQ(load(context_, sm80, TL_DEVICE_ANY, nullptr, &message), TL_DRIVER);
  EXPECT_NE(message.find("driver_absent"), std::string::npos) << message;
}

// Any device means the thread's current one where the code runs there.
TEST_F(Hip, AnyDeviceIsTheCurrentOneWhereItFits) {
  const Program program = parse(context_);
  const Artifact artifact = compile(context_, program, "gfx90a");
  for (int current : {0, 1}) {
    fake().fake_set_current(current);
    Kernel kernel;
    ASSERT_EQ(load(context_, artifact, TL_DEVICE_ANY, &kernel), TL_OK);
    ASSERT_EQ(tl_kernel_prepare(kernel.get(), nullptr), TL_OK);
    const tl_arg args[] = {
        {TL_ARG_I64, 0, 0}, {TL_ARG_F64, 0, 0}, {TL_ARG_POINTER, 0, 0}, {TL_ARG_POINTER, 0, 0}};
    EXPECT_EQ(tl_kernel_launch(kernel.get(), nullptr, args, 4, nullptr), TL_OK);
  }
  fake().fake_set_current(0);
}

TEST_F(Hip, ConfigurationsAreMeasuredOnTheDevice) {
  const Program program = parse(context_,
                                "tl 1 program tuned\n"
                                "param ROWS in {8, 16}\n"
                                "dim m\n"
                                "tensor X: f32[m, 32] readonly\n"
                                "tensor Y: f32[m, 32]\n"
                                "kernel tuned grid(b: ceildiv(m, ROWS)) threads 64 {\n"
                                "  alloc x: fragment f32[ROWS, 32]\n"
                                "  copy X[b * ROWS :+ ROWS, 0 :+ 32] -> x\n"
                                "  copy x -> Y[b * ROWS :+ ROWS, 0 :+ 32]\n"
                                "}\n");
  tl_target* t = nullptr;
  ASSERT_EQ(tl_target_parse("hip", &t, nullptr), TL_OK);
  const Target target(t);
  tl_options* o = nullptr;
  ASSERT_EQ(tl_options_create(&o, nullptr), TL_OK);
  const Options options(o);
  ASSERT_EQ(tl_options_set_str(o, "tune", "measure", nullptr), TL_OK);
  ASSERT_EQ(tl_options_set_str(o, "sizes", "m=16", nullptr), TL_OK);
  tl_tuning* tuning = nullptr;
  tl_error* error = nullptr;
  fake().fake_run_nothing(1);
  ASSERT_EQ(tl_tune(context_.get(), program.get(), t, o, &tuning, &error), TL_OK) << tl_error_message(error);
  fake().fake_run_nothing(0);
  ASSERT_EQ(tl_tuning_count(tuning), 2u);
  tl_configuration_info info{};
  info.struct_size = sizeof info;
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(tl_tuning_configuration(tuning, i, &info), TL_OK);
    EXPECT_GT(info.measured_microseconds, 0) << (info.refusal ? info.refusal : "");
  }
  tl_tuning_release(tuning);
}

TEST(NoRuntime, EverythingButHipWorks) {
  EXPECT_EQ(tl_device_count(), 1u);
  const Context context = make_context();
  tl_target* target = nullptr;
  ASSERT_EQ(tl_target_best(context.get(), &target, nullptr), TL_OK);
  EXPECT_STREQ(tl_target_name(target), "host");
  tl_target_release(target);
  tl_error* error = nullptr;
  EXPECT_EQ(tl_target_parse("hip", &target, &error), TL_DRIVER);
  const Failure failure(error);
  EXPECT_STREQ(first(failure).code, "driver_absent");
  EXPECT_NE(std::string(first(failure).hint).find("install ROCm 6.0"), std::string::npos);
  const Program program = parse(context);
  const Artifact artifact = compile(context, program, "gfx942");
  std::string message;
  for (const size_t ordinal : {TL_DEVICE_ANY, size_t{1}}) {
    EXPECT_EQ(load(context, artifact, ordinal, nullptr, &message), TL_DRIVER);
    EXPECT_NE(message.find("the HIP runtime cannot be loaded"), std::string::npos) << message;
  }
  EXPECT_EQ(load(context, artifact, 0, nullptr, &message), TL_DRIVER);
}

}  // namespace
}  // namespace tilegen::test
