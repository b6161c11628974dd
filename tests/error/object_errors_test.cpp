// Mistakes with contexts, options, targets, structs, compiling and loading.
#include <gtest/gtest.h>

#include <string>

#include "golden.h"
#include "programs.h"

namespace tilegen::test {
namespace {

template <class Call>
void expect_failure(const std::string& golden, Call call) {
  tl_error* error = nullptr;
  EXPECT_NE(call(&error), TL_OK) << golden;
  expect_golden(golden, Failure(error));
}

TEST(ObjectErrors, Arguments) {
  const Context context = make_context();
  expect_failure("null_argument.context", [](tl_error** e) { return tl_context_create(nullptr, e); });
  expect_failure("bad_enum.log_level", [&](tl_error** e) {
    return tl_context_set_log(context.get(), 9, nullptr, nullptr, nullptr, e);
  });
  expect_failure("unknown_option.limit",
                 [&](tl_error** e) { return tl_context_set_limit(context.get(), "speed", 1, e); });
  expect_failure("unknown_option.raised_limit",
                 [&](tl_error** e) { return tl_context_set_limit(context.get(), "rank", 9, e); });
  expect_failure("bad_name.program", [&](tl_error** e) {
    tl_builder* b = nullptr;
    return tl_builder_create(context.get(), "1st", &b, e);
  });
  expect_failure("no_such_target.name", [&](tl_error** e) {
    tl_target* t = nullptr;
    return tl_target_parse("sm_1", &t, e);
  });
}

TEST(ObjectErrors, Options) {
  tl_options* made = nullptr;
  ASSERT_EQ(tl_options_create(&made, nullptr), TL_OK);
  const Options options(made);
  expect_failure("unknown_option.name",
                 [&](tl_error** e) { return tl_options_set_bool(made, "fast", 1, e); });
  expect_failure("unknown_option.type",
                 [&](tl_error** e) { return tl_options_set_i64(made, "keep_ir", 1, e); });
  expect_failure("unknown_option.value",
                 [&](tl_error** e) { return tl_options_set_bool(made, "keep_ir", 7, e); });
}

struct Compiled {
  Context context = make_context();
  Program program;
  Target target;
  Artifact artifact;
  Kernel kernel;

  explicit Compiled(const char* target_name = "host") {
    const Builder b = make_builder(context, "matmul");
    build_gemm(b.get());
    finish(b, &program);
    tl_target* t = nullptr;
    tl_target_parse(target_name, &t, nullptr);
    target.reset(t);
  }
  tl_status compile(const tl_options* options, tl_error** error) {
    tl_artifact* made = nullptr;
    const tl_status status = tl_compile(context.get(), program.get(), target.get(), options, &made, error);
    artifact.reset(made);
    return status;
  }
  tl_status load(size_t ordinal, tl_error** error) {
    tl_kernel* made = nullptr;
    const tl_status status = tl_kernel_load(context.get(), artifact.get(), ordinal, &made, error);
    kernel.reset(made);
    return status;
  }
};

Options options_with(const char* name, const char* value) {
  tl_options* options = nullptr;
  tl_options_create(&options, nullptr);
  EXPECT_EQ(value ? tl_options_set_str(options, name, value, nullptr)
                  : tl_options_set_bool(options, name, 1, nullptr),
            TL_OK);
  return Options(options);
}

TEST(ObjectErrors, Compiling) {
  Compiled c;
  ASSERT_TRUE(c.program && c.target);
  const Options broken = options_with("schedule_json", "{\"kernels\": 3}");
  expect_failure("json_error.schedule", [&](tl_error** e) { return c.compile(broken.get(), e); });
  const auto yes = [](void*) -> int32_t { return 1; };
  tl_context_set_cancel(c.context.get(), yes, nullptr, nullptr, nullptr);
  expect_failure("cancelled_by_caller.callback", [&](tl_error** e) { return c.compile(nullptr, e); });
}

// The smallest int8 instruction of that target is 32 deep.
TEST(ObjectErrors, Loading) {
  Compiled c;
  ASSERT_TRUE(c.program && c.target);
  ASSERT_EQ(c.compile(nullptr, nullptr), TL_OK);
  expect_failure("device_absent.ordinal", [&](tl_error** e) { return c.load(3, e); });
  ASSERT_EQ(c.load(0, nullptr), TL_OK);
  tl_launch launch{};
  launch.struct_size = 3;
  expect_failure("bad_struct_size.launch",
                 [&](tl_error** e) { return tl_kernel_launch(c.kernel.get(), &launch, nullptr, 0, e); });
  launch.struct_size = sizeof launch;
  launch.stream = &launch;
  expect_failure("launch_device.stream",
                 [&](tl_error** e) { return tl_kernel_launch(c.kernel.get(), &launch, nullptr, 0, e); });
  const Options plan_only = options_with("plan_only", nullptr);
  ASSERT_EQ(c.compile(plan_only.get(), nullptr), TL_OK);
  expect_failure("target_unsupported.plan_only", [&](tl_error** e) { return c.load(0, e); });
}

}  // namespace
}  // namespace tilegen::test
