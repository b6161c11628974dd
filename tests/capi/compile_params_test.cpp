// Compile-time parameters through the C interface: null and failed objects, and who owns what.
#include <gtest/gtest.h>

#include <string>

#include "scope.h"

namespace tilegen::test {
namespace {

constexpr int64_t kDomain[] = {64, 128};

TEST(CompileParams, ABuilderThatFailedGivesTheFirstValue) {
  EXPECT_EQ(tl_param(nullptr, "BM", kDomain, 2), 64);
  EXPECT_EQ(tl_param(nullptr, "BM", nullptr, 2), 1);
  tl_builder_bind(nullptr, "BM", 1);
  const Context context = make_context();
  const Builder builder = make_builder(context, "p");
  tl_builder_bind(builder.get(), "BM", 128);
  EXPECT_EQ(tl_param(builder.get(), "BM", kDomain, 2), 128);
  EXPECT_EQ(tl_builder_status(builder.get()), TL_OK);
  EXPECT_EQ(tl_param(builder.get(), "BN", nullptr, 2), 1);
  EXPECT_EQ(tl_builder_status(builder.get()), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_param(builder.get(), "BK", kDomain, 2), 64);
}

TEST(CompileParams, BindLeavesTheProgramAndRefusesNulls) {
  const Context context = make_context();
  const std::string text =
      "tl 1 program p\nparam BM in {64, 128}\ntensor X: f32[128]\n"
      "kernel k grid (b: 1) { parallel i in BM { X[i] = 1.0f32 } }\n";
  tl_program *program = nullptr, *bound = nullptr;
  ASSERT_EQ(tl_program_parse(context.get(), text.data(), text.size(), nullptr, &program, nullptr), TL_OK);
  const char* name = "BM";
  const int64_t value = 128;
  EXPECT_EQ(tl_program_bind(nullptr, program, &name, &value, 1, &bound, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_program_bind(context.get(), nullptr, &name, &value, 1, &bound, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_program_bind(context.get(), program, nullptr, &value, 1, &bound, nullptr),
            TL_INVALID_ARGUMENT);
  ASSERT_EQ(tl_program_bind(context.get(), program, &name, &value, 1, &bound, nullptr), TL_OK);
  tl_compile_param_info info{};
  EXPECT_EQ(tl_program_compile_param(bound, 0, &info), TL_INVALID_ARGUMENT);  // struct_size
  info.struct_size = sizeof info;
  ASSERT_EQ(tl_program_compile_param(bound, 0, &info), TL_OK);
  EXPECT_EQ(info.value, 128);
  EXPECT_EQ(info.domain_size, 2u);
  EXPECT_STREQ(info.name, "BM");
  ASSERT_EQ(tl_program_compile_param(program, 0, &info), TL_OK);
  EXPECT_EQ(info.value, 64);
  EXPECT_EQ(tl_program_compile_param(program, 1, &info), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_program_compile_param_count(nullptr), 0u);
  tl_program_release(program);
  tl_program_release(bound);
}

TEST(Tuning, HandsOutProgramsAndRefusesNulls) {
  const Context context = make_context();
  const std::string text =
      "tl 1 program p\nparam BM in {64, 128, 4096}\ntensor X: f32[8192]\n"
      "kernel k grid (b: 8192 // BM) threads BM { parallel i in BM { X[b * BM + i] = 1.0f32 } }\n";
  tl_program *program = nullptr, *best = nullptr;
  ASSERT_EQ(tl_program_parse(context.get(), text.data(), text.size(), nullptr, &program, nullptr), TL_OK);
  tl_target* target = nullptr;
  ASSERT_EQ(tl_target_parse("sm_90a", &target, nullptr), TL_OK);
  tl_tuning* tuning = nullptr;
  EXPECT_EQ(tl_tune(nullptr, program, target, nullptr, &tuning, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_tune(context.get(), nullptr, target, nullptr, &tuning, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_tune(context.get(), program, nullptr, nullptr, &tuning, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_tune(context.get(), program, target, nullptr, nullptr, nullptr), TL_INVALID_ARGUMENT);
  ASSERT_EQ(tl_tune(context.get(), program, target, nullptr, &tuning, nullptr), TL_OK);
  tl_program_release(program);
  ASSERT_EQ(tl_tuning_count(tuning), 3u);
  tl_configuration_info info{};
  EXPECT_EQ(tl_tuning_configuration(tuning, 0, &info), TL_INVALID_ARGUMENT);  // struct_size
  info.struct_size = sizeof info;
  EXPECT_EQ(tl_tuning_configuration(tuning, 3, &info), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_tuning_configuration(nullptr, 0, &info), TL_INVALID_ARGUMENT);
  ASSERT_EQ(tl_tuning_configuration(tuning, 2, &info), TL_OK);
  EXPECT_EQ(info.values[0], 4096);
  EXPECT_NE(info.refusal, nullptr);
  ASSERT_EQ(tl_tuning_configuration(tuning, 0, &info), TL_OK);
  ASSERT_EQ(info.value_count, 1u);
  EXPECT_GT(info.microseconds, 0);
  EXPECT_EQ(info.refusal, nullptr);
  const int64_t value = info.values[0];
  EXPECT_EQ(tl_tuning_program(tuning, 3, &best, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_NE(tl_tuning_program(tuning, 2, &best, nullptr), TL_OK);
  EXPECT_EQ(best, nullptr);
  ASSERT_EQ(tl_tuning_program(tuning, 0, &best, nullptr), TL_OK);
  tl_tuning_retain(tuning);
  tl_tuning_release(tuning);
  tl_tuning_release(tuning);
  tl_tuning_release(nullptr);
  EXPECT_EQ(tl_tuning_count(nullptr), 0u);
  // The program outlives the tuning, and can be bound anew.
  tl_compile_param_info param{};
  param.struct_size = sizeof param;
  ASSERT_EQ(tl_program_compile_param(best, 0, &param), TL_OK);
  EXPECT_EQ(param.value, value);
  tl_program* other = nullptr;
  const char* name = "BM";
  const int64_t wide = 128;
  EXPECT_EQ(tl_program_bind(context.get(), best, &name, &wide, 1, &other, nullptr), TL_OK);
  tl_program_release(other);
  tl_program_release(best);
  tl_target_release(target);
}

}  // namespace
}  // namespace tilegen::test
