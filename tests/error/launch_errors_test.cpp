// Arguments that do not fit the program. The interpreter checks them as a launch does.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "capi/dlpack.h"
#include "golden.h"

namespace tilegen::test {
namespace {

const char* const kText =
    "tl 1 program scale\n"
    "dim n >= 1 <= 1000 divisible 4\n"
    "dim ld\n"
    "scalar s: f32\n"
    "scalar shift: i32\n"
    "tensor X: f32[n, 8] strides [ld, 1] readonly\n"
    "tensor Y: f32[n, 8]\n"
    "kernel scale grid(b: n) {\n"
    "  parallel j in 8 {\n"
    "    Y[b, j] = X[b, j] * s + cast(f32, shift)\n"
    "  }\n"
    "}\n";

struct Tensor {
  std::vector<float> data;
  std::vector<int64_t> shape, strides;
  DLTensor view{};

  Tensor(std::vector<int64_t> extents, std::vector<int64_t> steps = {})
      : data(4096), shape(std::move(extents)), strides(std::move(steps)) {}
  tl_arg arg() {
    view.data = data.data();
    view.device = {view.device.device_type ? view.device.device_type : 1, view.device.device_id};
    view.ndim = static_cast<int32_t>(shape.size());
    if (view.dtype.bits == 0) view.dtype = {2, 32, 1};
    view.shape = shape.data();
    view.strides = strides.empty() ? nullptr : strides.data();
    return {TL_ARG_TENSOR, 0, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&view))};
  }
};

tl_arg number(int64_t v) { return {TL_ARG_I64, 0, static_cast<uint64_t>(v)}; }
tl_arg number(double v) {
  tl_arg a{TL_ARG_F64, 0, 0};
  std::memcpy(&a.payload, &v, sizeof v);
  return a;
}

class LaunchErrors : public testing::Test {
 protected:
  void SetUp() override {
    context_ = make_context();
    tl_program* made = nullptr;
    tl_error* error = nullptr;
    ASSERT_EQ(tl_program_parse(context_.get(), kText, std::strlen(kText), "scale.tl", &made, &error), TL_OK)
        << tl_error_message(error);
    program_.reset(made);
  }
  void expect(const std::string& golden, const std::vector<tl_arg>& args) {
    tl_error* error = nullptr;
    EXPECT_NE(tl_interpret(program_.get(), args.data(), args.size(), &error), TL_OK) << golden;
    expect_golden(golden, Failure(error));
  }
  Context context_;
  Program program_;
  Tensor x_{{12, 8}, {10, 1}}, y_{{12, 8}};
};

TEST_F(LaunchErrors, GoodArgumentsPass) {
  x_.data[0] = 3.0f;
  x_.data[10] = 5.0f;
  const std::vector<tl_arg> args = {number(2.0), number(int64_t{1}), x_.arg(), y_.arg()};
  tl_error* error = nullptr;
  ASSERT_EQ(tl_interpret(program_.get(), args.data(), args.size(), &error), TL_OK) << tl_error_message(error);
  EXPECT_EQ(y_.data[0], 7.0f);
  EXPECT_EQ(y_.data[8], 11.0f);
}

TEST_F(LaunchErrors, Goldens) {
  const tl_arg s = number(2.0), one = number(int64_t{1});
  expect("launch_arity.few", {s, one});
  expect("launch_kind.scalar", {one, one, x_.arg(), y_.arg()});
  expect("launch_kind.tensor", {s, one, s, y_.arg()});
  expect("launch_kind.unknown", {s, one, {99, 0, 0}, y_.arg()});
  expect("launch_dtype.scalar_range", {s, number(int64_t{1} << 40), x_.arg(), y_.arg()});
  {
    Tensor flat{{96}};
    expect("launch_rank.flat", {s, one, flat.arg(), y_.arg()});
  }
  {
    Tensor half{{12, 8}};
    half.view.dtype = {2, 16, 1};
    expect("launch_dtype.tensor", {s, one, x_.arg(), half.arg()});
  }
  {
    Tensor other{{16, 8}};
    expect("launch_shape.disagree", {s, one, x_.arg(), other.arg()});
    Tensor wide{{12, 9}};
    expect("launch_shape.constant", {s, one, x_.arg(), wide.arg()});
  }
  {
    Tensor strided{{12, 8}, {16, 2}};
    expect("launch_stride.not_compact", {s, one, x_.arg(), strided.arg()});
    expect("launch_stride.stated", {s, one, strided.arg(), y_.arg()});
  }
  {
    Tensor odd{{12, 8}};
    odd.arg();
    odd.view.byte_offset = 2;
    const tl_arg a{TL_ARG_TENSOR, 0, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&odd.view))};
    expect("launch_alignment.offset", {s, one, x_.arg(), a});
  }
  {
    Tensor far{{12, 8}};
    far.view.device = {2, 1};
    expect("launch_device.cuda", {s, one, x_.arg(), far.arg()});
  }
  {
    Tensor a{{10, 8}, {8, 1}}, b{{10, 8}};
    expect("launch_fact.divisible", {s, one, a.arg(), b.arg()});
  }
  {
    const tl_arg x{TL_ARG_POINTER, 0, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(x_.data.data()))};
    expect("launch_kind.unsolved", {s, one, x, y_.arg()});
    const tl_arg null{TL_ARG_POINTER, 0, 0};
    expect("launch_kind.null", {number(int64_t{12}), number(int64_t{8}), s, one, null, y_.arg()});
  }
}

// Nothing tells a dim that only an optional tensor has, where the launch leaves that out.
TEST(OptionalErrors, DimOfATensorThatIsLeftOut) {
  const char* const text =
      "tl 1 program sums\n"
      "dim n\n"
      "dim k\n"
      "tensor W: f32[n, k] readonly optional\n"
      "tensor Y: f32[n, 8]\n"
      "kernel k0 grid(b: n) {\n"
      "  parallel j in 8 {\n"
      "    if present(W) {\n"
      "      Y[b, j] = W[b, j + k - 8]\n"
      "    }\n"
      "  }\n"
      "}\n";
  const Context context = make_context();
  tl_error* error = nullptr;
  tl_program* parsed = nullptr;
  ASSERT_EQ(tl_program_parse(context.get(), text, std::strlen(text), "sums.tl", &parsed, &error), TL_OK);
  const Program program(parsed);
  Tensor y{{3, 8}}, w{{3, 9}};
  const tl_arg null{TL_ARG_POINTER, 0, 0};
  const tl_arg both[] = {w.arg(), y.arg()}, one[] = {null, y.arg()};
  EXPECT_EQ(tl_interpret(program.get(), both, 2, &error), TL_OK);
  EXPECT_NE(tl_interpret(program.get(), one, 2, &error), TL_OK);
  expect_golden("launch_kind.left_out", Failure(error));
  const tl_arg given[] = {number(int64_t{3}), number(int64_t{9}), null, y.arg()};
  error = nullptr;
  EXPECT_EQ(tl_interpret(program.get(), given, 4, &error), TL_OK);
}

// What the simulator finds is the error of the launch: one diagnostic each.
TEST(SimulatorErrors, BlocksThatWriteOneElement) {
  const char* const text =
      "tl 1 program racy\n"
      "tensor Y: f32[4]\n"
      "kernel k grid(b: 2) {\n"
      "  parallel i in 4 {\n"
      "    Y[i] = cast(f32, b)\n"
      "  }\n"
      "}\n";
  const Context context = make_context();
  tl_error* error = nullptr;
  tl_program* parsed = nullptr;
  ASSERT_EQ(tl_program_parse(context.get(), text, std::strlen(text), "racy.tl", &parsed, &error), TL_OK);
  const Program program(parsed);
  tl_target* target = nullptr;
  ASSERT_EQ(tl_target_parse("sim:sm_80", &target, &error), TL_OK);
  tl_artifact* artifact = nullptr;
  ASSERT_EQ(tl_compile(context.get(), program.get(), target, nullptr, &artifact, &error), TL_OK);
  tl_kernel* kernel = nullptr;
  ASSERT_EQ(tl_kernel_load(context.get(), artifact, TL_DEVICE_ANY, &kernel, &error), TL_OK);
  float y[4] = {};
  tl_arg arg{TL_ARG_POINTER, 0, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(y))};
  ASSERT_EQ(tl_kernel_launch(kernel, nullptr, &arg, 1, &error), TL_INVALID_PROGRAM);
  expect_golden("simulator_finding.race", Failure(error));
  tl_kernel_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(tl_kernel_describe(kernel, 0, &info, nullptr), TL_OK);
  EXPECT_NE(std::strstr(info.log, "\"kind\": \"data_race\""), nullptr) << info.log;
  EXPECT_STREQ(tl_target_name(target), "sim:sm_80");
  tl_kernel_release(kernel);
  tl_artifact_release(artifact);
  tl_target_release(target);
}

TEST(SimulatorErrors, UnknownWaysToRun) {
  const Context context = make_context();
  const char* const text =
      "tl 1 program p\ntensor Y: f32[4]\nkernel k grid(b: 1) {\n  parallel i in 4 {\n    Y[i] = 0.0f32\n  "
      "}\n}\n";
  tl_error* error = nullptr;
  tl_program* parsed = nullptr;
  ASSERT_EQ(tl_program_parse(context.get(), text, std::strlen(text), "p.tl", &parsed, &error), TL_OK)
      << tl_error_message(error);
  const Program program(parsed);
  for (const char* name : {"simulator_order", "simulator_async"}) {
    tl_target* target = nullptr;
    tl_options* options = nullptr;
    tl_artifact* artifact = nullptr;
    ASSERT_EQ(tl_target_parse("sim:sm_80", &target, &error), TL_OK);
    ASSERT_EQ(tl_options_create(&options, &error), TL_OK);
    ASSERT_EQ(tl_options_set_str(options, name, "sideways", &error), TL_OK);
    EXPECT_EQ(tl_compile(context.get(), program.get(), target, options, &artifact, &error),
              TL_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(tl_error_message(error), "sideways"), nullptr);
    tl_error_release(error);
    tl_options_destroy(options);
    tl_target_release(target);
  }
}

TEST_F(LaunchErrors, AssertionsThatFail) {
  const std::string text =
      "tl 1 program p\ndim n\ntensor A: i32[n, 8]\nkernel k grid(b: n) {\n  serial t in 0 .. n {\n"
      "    parallel i in 8 {\n      assert b < 2 or t < 1 or i < 3, \"the corner is empty\"\n"
      "      A[b, i] = cast(i32, t)\n    }\n  }\n  assert n < 5, \"few rows\"\n}\n";
  tl_program* program = nullptr;
  tl_error* error = nullptr;
  ASSERT_EQ(tl_program_parse(context_.get(), text.data(), text.size(), "p.tl", &program, &error), TL_OK)
      << tl_error_message(error);
  std::vector<int32_t> a(5 * 8);
  const tl_arg args[] = {number(int64_t{5}), {TL_ARG_POINTER, TL_I32, reinterpret_cast<uint64_t>(a.data())}};
  EXPECT_EQ(tl_interpret(program, args, 2, &error), TL_ASSERTION);
  tl_program_release(program);
  expect_golden("assertion_failed.place", Failure(error));
}

}  // namespace
}  // namespace tilegen::test
