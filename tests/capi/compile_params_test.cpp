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

}  // namespace
}  // namespace tilegen::test
