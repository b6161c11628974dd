// CUDA through the C interface, on the stand-in for the driver that TILEGEN_CUDA_DRIVER names. NoDriver tests
// run in a process of their own, where there is none.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "capi/dlpack.h"
#include "capi_client.h"

namespace tilegen::test {
namespace {

TEST_F(Cuda, DevicesComeBehindTheHost) {
  tl_device_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(tl_device_describe(0, &info), TL_OK);
  EXPECT_EQ(info.kind, static_cast<tl_device_kind>(TL_DEVICE_HOST));
  ASSERT_EQ(tl_device_describe(2, &info), TL_OK);
  EXPECT_EQ(info.kind, static_cast<tl_device_kind>(TL_DEVICE_CUDA));
  EXPECT_STREQ(info.name, "Fake L4");
  EXPECT_STREQ(info.target, "sm_89");
  EXPECT_STREQ(info.features, "capability 8.9");
  EXPECT_EQ(info.cores, 132u);
  EXPECT_EQ(info.memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ(info.driver_ordinal, 1u);
  EXPECT_EQ(info.driver_version, 12080u);
  EXPECT_EQ(tl_device_describe(3, &info), TL_DRIVER);
}

constexpr char kTuned[] =
    "tl 1 program tuned\n"
    "param ROWS in {8, 16, 32}\n"
    "dim m\n"
    "tensor X: f32[m, 32] readonly\n"
    "tensor Y: f32[m, 32]\n"
    "kernel tuned grid(b: ceildiv(m, ROWS)) threads 64 {\n"
    "  alloc x: fragment f32[ROWS, 32]\n"
    "  copy X[b * ROWS :+ ROWS, 0 :+ 32] -> x\n"
    "  copy x -> Y[b * ROWS :+ ROWS, 0 :+ 32]\n"
    "}\n";

// Launches of the configurations by their blocks, of 256 rows; what they read is no row of zeros.
int blocks_seen[33], zeros_seen;
void tuned(const FakeLaunch* launch) {
  blocks_seen[launch->grid[0]]++;
  const auto* x = reinterpret_cast<const float*>(launch->values[1]);
  for (int i = 0; i < 256 * 32; i += 32) zeros_seen += x[i] == 0 && x[i + 1] == 0;
}

TEST_F(Cuda, ConfigurationsAreMeasuredOnTheDevice) {
  fake().fake_register("tuned", tuned);
  const Program program = parse(context_, kTuned);
  tl_target* t = nullptr;
  ASSERT_EQ(tl_target_parse("sm_90", &t, nullptr), TL_OK);
  const Target target(t);
  tl_options* o = nullptr;
  ASSERT_EQ(tl_options_create(&o, nullptr), TL_OK);
  const Options options(o);
  ASSERT_EQ(tl_options_set_str(o, "tune", "measure", nullptr), TL_OK);
  ASSERT_EQ(tl_options_set_str(o, "sizes", "m=256", nullptr), TL_OK);
  tl_tuning* tuning = nullptr;
  tl_error* error = nullptr;
  ASSERT_EQ(tl_tune(context_.get(), program.get(), t, o, &tuning, &error), TL_OK) << tl_error_message(error);
  ASSERT_EQ(tl_tuning_count(tuning), 3u);
  tl_configuration_info info{};
  info.struct_size = sizeof info;
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(tl_tuning_configuration(tuning, i, &info), TL_OK);
    EXPECT_GT(info.measured_microseconds, 0);
    EXPECT_GT(info.microseconds, 0);
  }
  tl_tuning_release(tuning);
  for (int blocks : {8, 16, 32}) EXPECT_GT(blocks_seen[blocks], 4);
  EXPECT_EQ(zeros_seen, 0);

  // A launch that the driver refuses is that configuration's refusal.
  fake().fake_fail("cuLaunchKernelEx", 1, 0, 1);
  fake().fake_fail("cuLaunchKernel", 1, 0, 1);
  ASSERT_EQ(tl_tune(context_.get(), program.get(), t, o, &tuning, &error), TL_OK) << tl_error_message(error);
  ASSERT_EQ(tl_tuning_configuration(tuning, 2, &info), TL_OK);
  ASSERT_NE(info.refusal, nullptr);
  EXPECT_NE(std::string(info.refusal).find("launching 'tuned'"), std::string::npos) << info.refusal;
  ASSERT_EQ(tl_tuning_configuration(tuning, 1, &info), TL_OK);
  EXPECT_EQ(info.refusal, nullptr);
  EXPECT_GT(info.measured_microseconds, 0);
  tl_tuning_release(tuning);
  fake().fake_fail("cuLaunchKernelEx", 0, 0, 0);
}

// A client compiled with the first version of the struct still fits, and nothing is written after it.
TEST_F(Cuda, TheFirstDeviceStructStillFits) {
  tl_device_info info;
  std::memset(&info, 0x5a, sizeof info);
  info.struct_size = 40;
  ASSERT_EQ(tl_device_describe(1, &info), TL_OK);
  EXPECT_STREQ(info.name, "Fake H200");
  EXPECT_EQ(info.memory_bytes, 0x5a5a5a5a5a5a5a5au);
  info.struct_size = 39;
  EXPECT_EQ(tl_device_describe(1, &info), TL_INVALID_ARGUMENT);
}

TEST_F(Cuda, TargetsOfThisMachine) {
  const std::pair<const char*, const char*> kNames[] = {
      {"cuda", "sm_90a"}, {"cuda:0", "sm_90a"}, {"cuda:1", "sm_89"}};
  for (const auto& [name, expected] : kNames) {
    tl_target* target = nullptr;
    ASSERT_EQ(tl_target_parse(name, &target, nullptr), TL_OK) << name;
    EXPECT_STREQ(tl_target_name(target), expected);
    tl_target_release(target);
  }
  tl_target* best = nullptr;
  ASSERT_EQ(tl_target_best(context_.get(), &best, nullptr), TL_OK);
  EXPECT_STREQ(tl_target_name(best), "sm_90a");
  tl_target_release(best);
  EXPECT_EQ(tl_target_parse("cuda:2", &best, nullptr), TL_DRIVER);
  EXPECT_EQ(tl_target_parse("cuda:x", &best, nullptr), TL_UNKNOWN_TARGET);
  EXPECT_EQ(tl_target_parse("cudas", &best, nullptr), TL_UNKNOWN_TARGET);
}

TEST_F(Cuda, FromTextToResults) {
  const Program program = parse(context_);
  const Artifact artifact = compile(context_, program, "cuda");
  const char* ptx = nullptr;
  size_t size = 0;
  ASSERT_EQ(tl_artifact_section(artifact.get(), TL_SECTION_PTX, &ptx, &size, nullptr), TL_OK);
  EXPECT_NE(std::string(ptx, size).find(".entry scale("), std::string::npos);
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
  DLTensor dx = tensor(x, 2), dy = tensor(y, 2);
  const auto pass = [](const DLTensor& t) {
    return tl_arg{TL_ARG_TENSOR, 0, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&t))};
  };
  const double factor = 2.5;
  tl_arg s{TL_ARG_F64, 0, 0};
  std::memcpy(&s.payload, &factor, sizeof factor);
  int stream = 0;
  const tl_launch on_stream{sizeof(tl_launch), 0, &stream};
  const tl_arg args[] = {s, pass(dx), pass(dy)};
  tl_error* error = nullptr;
  ASSERT_EQ(tl_kernel_launch(kernel.get(), &on_stream, args, 3, &error), TL_OK) << tl_error_message(error);
  EXPECT_EQ(fake().fake_launch(fake().fake_launches() - 1)->stream, &stream);
  ASSERT_EQ(tl_device_wait(1, &stream, nullptr), TL_OK);
  std::vector<float> result(host.size());
  ASSERT_EQ(tl_device_copy(1, result.data(), y, bytes, nullptr, nullptr), TL_OK);
  for (size_t i = 0; i < host.size(); ++i) ASSERT_EQ(result[i], 2.5f * host[i]) << i;

  dx = tensor(host.data(), 1);
  EXPECT_EQ(tl_kernel_launch(kernel.get(), nullptr, args, 3, &error), TL_LAUNCH_ARGUMENT);
  EXPECT_NE(
      std::string(tl_error_message(error)).find("tensor 'X' lives on the host, the kernel runs on cuda:0"),
      std::string::npos)
      << tl_error_message(error);
  tl_error_release(error);
  EXPECT_EQ(tl_device_free(1, x, nullptr), TL_OK);
  EXPECT_EQ(tl_device_free(1, y, nullptr), TL_OK);
  EXPECT_EQ(fake().fake_allocations(), 0);
}

TEST_F(Cuda, ArtifactsFitDevicesOfTheirKindAndAge) {
  const Program program = parse(context_);
  const Artifact host = compile(context_, program, "host"), sm80 = compile(context_, program, "sm_80"),
                 sm90 = compile(context_, program, "sm_90"), sm90a = compile(context_, program, "sm_90a");
  std::string message;
  Kernel kernel;
  EXPECT_EQ(load(context_, host, 0, &kernel), TL_OK);
  EXPECT_EQ(load(context_, host, TL_DEVICE_ANY, &kernel), TL_OK);
  EXPECT_EQ(load(context_, host, 1, nullptr, &message), TL_DRIVER);
  EXPECT_NE(message.find("the artifact is for host, device 1 is Fake H200"), std::string::npos) << message;
  EXPECT_EQ(load(context_, sm80, 0, nullptr, &message), TL_DRIVER);
  EXPECT_NE(message.find("device 0 is the host"), std::string::npos) << message;
  EXPECT_EQ(load(context_, sm80, 1, &kernel), TL_OK);
  EXPECT_EQ(load(context_, sm80, 2, &kernel), TL_OK);
  EXPECT_EQ(load(context_, sm90, 1, &kernel), TL_OK);
  EXPECT_EQ(load(context_, sm90, 2, nullptr, &message), TL_DRIVER);
  EXPECT_NE(message.find("the artifact is for sm_90, device 2 is Fake L4 (capability 8.9)"),
            std::string::npos)
      << message;
  EXPECT_EQ(load(context_, sm90, 3, nullptr, &message), TL_DRIVER);
  EXPECT_EQ(load(context_, sm90a, 1, &kernel), TL_OK);
  EXPECT_EQ(load(context_, sm90a, 2, nullptr, &message), TL_DRIVER);
  EXPECT_NE(message.find("the artifact is for sm_90a, device 2 is Fake L4 (capability 8.9)"),
            std::string::npos)
      << message;
}

// Any device means that of the current context where there is one.
TEST_F(Cuda, AnyDeviceFollowsTheCurrentContext) {
  const Program program = parse(context_);
  const Artifact artifact = compile(context_, program, "sm_80");
  void* context = fake().fake_make_context(1);
  fake().fake_set_current(context);
  Kernel kernel;
  ASSERT_EQ(load(context_, artifact, TL_DEVICE_ANY, &kernel), TL_OK);
  ASSERT_EQ(tl_kernel_prepare(kernel.get(), nullptr), TL_OK);
  EXPECT_EQ(fake().fake_current(), context);
  const int pushes = fake().fake_calls("cuCtxPushCurrent_v2");
  const tl_arg args[] = {
      {TL_ARG_I64, 0, 0}, {TL_ARG_F64, 0, 0}, {TL_ARG_POINTER, 0, 0}, {TL_ARG_POINTER, 0, 0}};
  EXPECT_EQ(tl_kernel_launch(kernel.get(), nullptr, args, 4, nullptr), TL_OK);
  EXPECT_EQ(fake().fake_calls("cuCtxPushCurrent_v2"), pushes);  // it is this context
  fake().fake_set_current(nullptr);
}

TEST_F(Cuda, FormsAreDescribed) {
  const Program program = parse(context_);
  const Artifact artifact = compile(context_, program, "sm_90");
  Kernel kernel;
  ASSERT_EQ(load(context_, artifact, 1, &kernel), TL_OK);
  ASSERT_EQ(tl_kernel_form_count(kernel.get()), 1u);
  tl_kernel_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(tl_kernel_describe(kernel.get(), 0, &info, nullptr), TL_OK);
  EXPECT_EQ(info.measured, 0);
  EXPECT_EQ(info.registers, -1);
  EXPECT_EQ(info.variant, 0u);
  EXPECT_STREQ(info.name, "scale");
  EXPECT_NE(std::string(info.guards).find("X % "), std::string::npos) << info.guards;
  EXPECT_GT(info.blocks_per_multiprocessor, 0);
  EXPECT_GT(info.compile_ms, 0);
  EXPECT_STREQ(info.log, "");
  ASSERT_EQ(tl_kernel_prepare(kernel.get(), nullptr), TL_OK);
  ASSERT_EQ(tl_kernel_describe(kernel.get(), 0, &info, nullptr), TL_OK);
  EXPECT_EQ(info.measured, 1);

  // Arguments that the form's guards refuse bring another form, which relies on nothing.
  void* memory = nullptr;
  ASSERT_EQ(tl_device_allocate(1, 4096, &memory, nullptr), TL_OK);
  char* const odd = static_cast<char*>(memory) + 4;
  const tl_arg args[] = {{TL_ARG_I64, 0, 1},
                         {TL_ARG_F64, 0, 0},
                         {TL_ARG_POINTER, 0, reinterpret_cast<uintptr_t>(odd)},
                         {TL_ARG_POINTER, 0, reinterpret_cast<uintptr_t>(odd + 1024)}};
  const int launches = fake().fake_launches();
  for (int i = 0; i < 2; ++i) {
    tl_error* error = nullptr;
    ASSERT_EQ(tl_kernel_launch(kernel.get(), nullptr, args, 4, &error), TL_OK) << tl_error_message(error);
  }
  EXPECT_EQ(fake().fake_launches(), launches + 2);
  EXPECT_EQ(tl_device_free(1, memory, nullptr), TL_OK);
  ASSERT_EQ(tl_kernel_form_count(kernel.get()), 2u);
  ASSERT_EQ(tl_kernel_describe(kernel.get(), 1, &info, nullptr), TL_OK);
  EXPECT_EQ(info.measured, 1);
  EXPECT_EQ(info.registers, 32);
  EXPECT_EQ(info.accumulation_registers, 0);
  EXPECT_EQ(info.scalar_registers, 0);
  EXPECT_EQ(info.variant, 1u);
  EXPECT_STREQ(info.name, "scale");
  EXPECT_STREQ(info.guards, "");
  EXPECT_EQ(info.threads % 32, 0u);
  EXPECT_NE(std::string(info.log).find("ptxas info"), std::string::npos);
  EXPECT_EQ(tl_kernel_describe(kernel.get(), 2, &info, nullptr), TL_INVALID_ARGUMENT);
  info.struct_size = 8;
  EXPECT_EQ(tl_kernel_describe(kernel.get(), 0, &info, nullptr), TL_INVALID_ARGUMENT);
  // A caller that does not know the fields behind the first version's.
  info = {};
  info.struct_size = offsetof(tl_kernel_info, accumulation_registers);
  info.accumulation_registers = info.scalar_registers = 77;
  EXPECT_EQ(tl_kernel_describe(kernel.get(), 1, &info, nullptr), TL_OK);
  EXPECT_EQ(info.registers, 32);
  EXPECT_EQ(info.accumulation_registers, 77);
  EXPECT_EQ(info.scalar_registers, 77);
}

// The host answers the same questions.
TEST_F(Cuda, HostKernelsAndMemoryToo) {
  const Program program = parse(context_);
  const Artifact artifact = compile(context_, program, "host");
  Kernel kernel;
  ASSERT_EQ(load(context_, artifact, 0, &kernel), TL_OK);
  ASSERT_EQ(tl_kernel_form_count(kernel.get()), 1u);
  EXPECT_EQ(tl_kernel_prepare(kernel.get(), nullptr), TL_OK);
  tl_kernel_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(tl_kernel_describe(kernel.get(), 0, &info, nullptr), TL_OK);
  EXPECT_STREQ(info.name, "scale");
  EXPECT_EQ(info.threads, 1u);
  void* memory = nullptr;
  ASSERT_EQ(tl_device_allocate(0, 100, &memory, nullptr), TL_OK);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
  char in[100], out[100];
  std::memset(in, 7, sizeof in);
  EXPECT_EQ(tl_device_copy(0, memory, in, sizeof in, nullptr, nullptr), TL_OK);
  EXPECT_EQ(tl_device_copy(0, out, memory, sizeof out, nullptr, nullptr), TL_OK);
  EXPECT_EQ(std::memcmp(in, out, sizeof in), 0);
  EXPECT_EQ(tl_device_wait(0, nullptr, nullptr), TL_OK);
  EXPECT_EQ(tl_device_free(0, memory, nullptr), TL_OK);
  EXPECT_EQ(tl_device_free(0, nullptr, nullptr), TL_OK);
  EXPECT_EQ(tl_device_allocate(0, SIZE_MAX, &memory, nullptr), TL_LIMIT_EXCEEDED);
}

TEST_F(Cuda, MemoryErrors) {
  void* memory = &memory;
  EXPECT_EQ(tl_device_allocate(1, 0, &memory, nullptr), TL_OK);
  EXPECT_EQ(memory, nullptr);
  tl_error* error = nullptr;
  EXPECT_EQ(tl_device_allocate(2, size_t{1} << 40, &memory, &error), TL_DRIVER);
  EXPECT_NE(std::string(tl_error_message(error))
                .find("allocating 1099511627776 bytes on cuda:1 (Fake L4) failed: "
                      "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"),
            std::string::npos)
      << tl_error_message(error);
  tl_error_release(error);
  EXPECT_EQ(tl_device_allocate(3, 1, &memory, nullptr), TL_DRIVER);
  EXPECT_EQ(tl_device_allocate(1, 1, nullptr, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_device_free(1, &memory, nullptr), TL_DRIVER);
  EXPECT_EQ(tl_device_copy(1, nullptr, &memory, 1, nullptr, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_device_copy(1, &memory, nullptr, 1, nullptr, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_device_copy(1, nullptr, nullptr, 0, nullptr, nullptr), TL_OK);
  EXPECT_EQ(tl_device_wait(9, nullptr, nullptr), TL_DRIVER);
  EXPECT_EQ(tl_kernel_prepare(nullptr, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_kernel_form_count(nullptr), 0u);
  EXPECT_EQ(tl_kernel_describe(nullptr, 0, nullptr, nullptr), TL_INVALID_ARGUMENT);
}

// Last: the primary context of the second device is lost after it.
TEST_F(Cuda, ZFailedKernelIsReportedAndItsContextLost) {
  const Program program = parse(context_);
  const Artifact artifact = compile(context_, program, "sm_80");
  Kernel kernel;
  ASSERT_EQ(load(context_, artifact, 2, &kernel), TL_OK);
  void* memory = nullptr;
  ASSERT_EQ(tl_device_allocate(2, 4096, &memory, nullptr), TL_OK);
  const tl_arg args[] = {{TL_ARG_I64, 0, 1},
                         {TL_ARG_F64, 0, 0},
                         {TL_ARG_POINTER, 0, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(memory))},
                         {TL_ARG_POINTER, 0, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(memory))}};
  ASSERT_EQ(tl_kernel_launch(kernel.get(), nullptr, args, 4, nullptr), TL_OK);
  fake().fake_fail("cuStreamSynchronize", 700, 0, -1);
  tl_error* error = nullptr;
  EXPECT_EQ(tl_device_wait(2, nullptr, &error), TL_DRIVER);
  EXPECT_NE(std::string(tl_error_message(error)).find("the last kernel launched by this library was 'scale"),
            std::string::npos)
      << tl_error_message(error);
  tl_error_release(error);
  EXPECT_EQ(tl_kernel_launch(kernel.get(), nullptr, args, 4, &error), TL_DRIVER);
  EXPECT_NE(std::string(tl_error_message(error)).find("is broken since CUDA_ERROR_ILLEGAL_ADDRESS"),
            std::string::npos)
      << tl_error_message(error);
  tl_error_release(error);
  fake().fake_fail("cuStreamSynchronize", 0, 0, 0);
}

TEST(NoDriver, EverythingButCudaWorks) {
  EXPECT_EQ(tl_device_count(), 1u);
  const Context context = make_context();
  tl_target* target = nullptr;
  ASSERT_EQ(tl_target_best(context.get(), &target, nullptr), TL_OK);
  EXPECT_STREQ(tl_target_name(target), "host");
  tl_target_release(target);
  tl_error* error = nullptr;
  EXPECT_EQ(tl_target_parse("cuda", &target, &error), TL_DRIVER);
  const Failure failure(error);
  EXPECT_STREQ(first(failure).code, "driver_absent");
  EXPECT_NE(std::string(first(failure).hint).find("install NVIDIA's driver"), std::string::npos);
  const Program program = parse(context);
  const Artifact artifact = compile(context, program, "sm_90");
  std::string message;
  for (const size_t ordinal : {TL_DEVICE_ANY, size_t{1}}) {
    EXPECT_EQ(load(context, artifact, ordinal, nullptr, &message), TL_DRIVER);
    EXPECT_NE(message.find("driver_absent"), std::string::npos) << message;
  }
  EXPECT_EQ(load(context, artifact, 0, nullptr, &message), TL_DRIVER);
}

}  // namespace
}  // namespace tilegen::test
