// Scheduled programs as text: the kernels that docs/performance.md compares with others on sm_90a, and
// pipelines of asynchronous copies on sm_80 and of loads to registers on gfx942. The expected text is
// scheduled/NAME.<target>.scheduled beside this file; TILEGEN_BLESS=1 writes it anew.
#include <cstdlib>

#include "scheduled_support.h"

namespace tilegen::expand {
namespace {

struct File {
  const char* path;
  const char* name;
  const char* target;
};

class ScheduledFile : public ::testing::TestWithParam<File> {};

TEST_P(ScheduledFile, IsAsWritten) {
  const File& f = GetParam();
  const auto e = expanded_from(schedule::source_path(std::string(f.path) + "/" + f.name + ".tl"), f.target);
  ASSERT_TRUE(e);
  const std::string got = print_scheduled(*e->program, e->kernel);
  const std::string golden = schedule::source_path(std::string("tests/unit/expand/scheduled/") + f.name +
                                                   "." + f.target + ".scheduled");
  if (std::getenv("TILEGEN_BLESS")) {
    std::ofstream(golden, std::ios::binary) << got;
    return;
  }
  EXPECT_EQ(got, schedule::read_file(golden)) << "TILEGEN_BLESS=1 rewrites the file when the change is meant";
}

constexpr const char* kFlagship = "tests/unit/schedule/flagship";
constexpr const char* kPlan = "tests/files/plan";
constexpr const char* kRegressions = "tests/differential/regressions";
constexpr const char* kHopper = "tests/files/plan/hopper";

INSTANTIATE_TEST_SUITE_P(
    All, ScheduledFile,
    ::testing::Values(
        File{kFlagship, "gemm_flagship", "sm_90a"}, File{kFlagship, "attention_full", "sm_90a"},
        File{kFlagship, "attention_causal", "sm_90a"}, File{kFlagship, "attention_packed", "sm_90a"},
        File{kFlagship, "attention_split", "sm_90a"}, File{kFlagship, "softmax_rows", "sm_90a"},
        File{kHopper, "products_without_loop", "sm_90a"},
        File{kHopper, "operand_decoded_beside_products", "sm_90a"},
        File{kHopper, "chain_of_three_products", "sm_90a"}, File{kHopper, "tile_of_an_outer_loop", "sm_90a"},
        File{kHopper, "copies_in_a_branch", "sm_90a"}, File{kHopper, "stores_in_turn", "sm_90a"},
        File{kRegressions, "alternating_warpgroups", "sm_90a"},
        File{kRegressions, "constant_weights", "sm_90a"}, File{kPlan, "gemm_bias_relu", "sm_80"},
        File{kPlan, "flash_attention", "sm_80"}, File{kPlan, "gemm_bias_relu", "gfx942"},
        File{kPlan, "gemm_bias_relu", "x86-64-v4"}),
    [](const auto& info) {
      std::string name = std::string(info.param.name) + "_" + info.param.target;
      for (char& c : name)
        if (!isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

}  // namespace
}  // namespace tilegen::expand
