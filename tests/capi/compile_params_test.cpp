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

TEST(Specialisations, ArePartsWithOwnersOfTheirOwn) {
  const Context context = make_context();
  const std::string text =
      "tl 1 program p\nparam BM in {64, 128}\ndim m\ntensor X: f32[m]\n"
      "kernel k grid (b: ceildiv(m, BM)) threads BM { parallel i in BM { X[b * BM + i] = 1.0f32 } }\n";
  tl_program* program = nullptr;
  tl_target* target = nullptr;
  tl_options* options = nullptr;
  tl_artifact *artifact = nullptr, *part = nullptr;
  tl_blob* sizes = nullptr;
  ASSERT_EQ(tl_program_parse(context.get(), text.data(), text.size(), nullptr, &program, nullptr), TL_OK);
  ASSERT_EQ(tl_target_parse("sim:sm_80", &target, nullptr), TL_OK);
  ASSERT_EQ(tl_options_create(&options, nullptr), TL_OK);
  EXPECT_EQ(tl_options_set_i64(options, "specialisations", -1, nullptr), TL_INVALID_ARGUMENT);
  ASSERT_EQ(tl_options_set_str(options, "sizes", "m=1..4096", nullptr), TL_OK);
  ASSERT_EQ(tl_options_set_str(options, "tune", "model", nullptr), TL_OK);
  ASSERT_EQ(tl_compile(context.get(), program, target, options, &artifact, nullptr), TL_OK);
  const size_t count = tl_artifact_specialisation_count(artifact);
  ASSERT_GE(count, 1u);
  EXPECT_EQ(tl_artifact_specialisation(artifact, count, &sizes, &part, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(sizes, nullptr);
  EXPECT_EQ(part, nullptr);
  EXPECT_EQ(tl_artifact_specialisation(artifact, 0, nullptr, nullptr, nullptr), TL_OK);
  ASSERT_EQ(tl_artifact_specialisation(artifact, 0, &sizes, &part, nullptr), TL_OK);
  tl_artifact_release(artifact);
  EXPECT_NE(std::string(tl_blob_data(sizes)).find("m"), std::string::npos);
  EXPECT_EQ(tl_artifact_specialisation_count(part), 0u);
  const char* listing = nullptr;
  size_t size = 0;
  ASSERT_EQ(tl_artifact_section(part, TL_SECTION_THREAD_PROGRAM, &listing, &size, nullptr), TL_OK);
  EXPECT_GT(size, 0u);
  tl_blob_release(sizes);
  tl_artifact_release(part);
  tl_options_destroy(options);
  tl_target_release(target);
  tl_program_release(program);
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
