// Plans as text: every program of tests/files/plan, for GPUs and for a host of each vector width, a product
// and attention for an AMD one too; those of tests/files/plan/hopper for that generation, and so the kernels
// that docs/performance.md compares with others, in the folder `flagship` beside this file. The expected text
// stands beside the program as NAME.<target>.plan; TILEGEN_BLESS=1 writes it anew. It has the decisions, and
// what there are notes of; the words of reasons and notes are those of the programs named "*_refusals" alone,
// so that a better wording is a change of few files.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "plan_support.h"

namespace tilegen::schedule {
namespace {

std::vector<std::filesystem::path> programs(const char* folder) {
  std::vector<std::filesystem::path> list;
  for (const auto& entry : std::filesystem::directory_iterator(source_path(folder)))
    if (entry.path().extension() == ".tl") list.push_back(entry.path());
  std::sort(list.begin(), list.end());
  return list;
}

plan::Schedule without_words(plan::Schedule s) {
  for (plan::KernelSchedule& k : s.kernels) {
    for (plan::OpPlan& o : k.ops) o.reason.clear();
    for (plan::ValuePlan& v : k.values) v.reason.clear();
    for (plan::LoopPlan& l : k.loops) l.reason.clear();
    for (plan::ConversionPlan& c : k.conversions) c.reason.clear();
    for (plan::Note& n : k.notes) n.text.clear();
    if (k.raster) k.raster->reason.clear();
    if (k.roles)
      for (plan::RolePlan& r : *k.roles) r.reason.clear();
    if (k.persistence) k.persistence->reason.clear();
    if (k.cluster) k.cluster->reason.clear();
    if (k.launch) k.launch->reason.clear();
  }
  return s;
}

class PlanFile : public ::testing::TestWithParam<std::tuple<std::filesystem::path, const char*>> {};

TEST_P(PlanFile, IsAsWritten) {
  const auto& [path, target] = GetParam();
  auto program = program_from(read_file(path.string()));
  ASSERT_TRUE(program);
  auto schedule = plan_for(*program, target);
  if (schedule && !path.stem().string().ends_with("_refusals")) schedule = without_words(*schedule);
  std::string got = schedule ? plan::schedule_to_text(*schedule) : schedule.error().to_text() + "\n";
  std::filesystem::path golden = path;
  golden.replace_extension(std::string(".") + target + ".plan");
  // The texts of a listing are inputs of other suites: its plans stand beside the others.
  if (golden.parent_path().filename() == "text")
    golden = std::filesystem::path(source_path("tests/files/plan")) / golden.filename();
  if (std::getenv("TILEGEN_BLESS")) {
    std::ofstream(golden, std::ios::binary) << got;
    return;
  }
  EXPECT_EQ(got, read_file(golden.string())) << "TILEGEN_BLESS=1 rewrites the file when the change is meant";
}

std::string test_name(const ::testing::TestParamInfo<PlanFile::ParamType>& info) {
  std::string name = std::get<0>(info.param).stem().string() + "_" + std::get<1>(info.param);
  for (char& c : name)
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, PlanFile,
                         ::testing::Combine(::testing::ValuesIn(programs("tests/files/plan")),
                                            ::testing::Values("sm_80", "sm_90a", "x86-64-v3", "x86-64-v4")),
                         test_name);
std::vector<std::filesystem::path> product_programs() {
  std::vector<std::filesystem::path> list;
  for (const std::filesystem::path& path : programs("tests/files/plan"))
    if (path.stem() == "gemm_bias_relu" || path.stem() == "flash_attention") list.push_back(path);
  return list;
}
INSTANTIATE_TEST_SUITE_P(Products, PlanFile,
                         ::testing::Combine(::testing::ValuesIn(product_programs()),
                                            ::testing::Values("gfx942", "x86-64-v4-amx")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Flagship, PlanFile,
                         ::testing::Combine(::testing::ValuesIn(programs("tests/unit/schedule/flagship")),
                                            ::testing::Values("sm_90a")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Hopper, PlanFile,
                         ::testing::Combine(::testing::ValuesIn(programs("tests/files/plan/hopper")),
                                            ::testing::Values("sm_90a")),
                         test_name);

// The paper's product by weights in 4 bits: what reads a fragment at half the index runs in the threads that
// hold the element, so no layout is converted.
const char* const kListings[] = {"tests/files/text/dequantized_gemm.tl"};
INSTANTIATE_TEST_SUITE_P(
    Listings, PlanFile,
    ::testing::Combine(::testing::Values(std::filesystem::path(source_path(kListings[0]))),
                       ::testing::Values("sm_80", "sm_90a")),
    test_name);

TEST(Listings, ElementsAtHalfTheIndexAreWhereTheyAreRead) {
  for (const char* target : {"sm_80", "sm_90a"}) {
    auto program = program_from(read_file(source_path(kListings[0])));
    ASSERT_TRUE(program);
    const auto schedule = plan_for(*program, target);
    ASSERT_TRUE(schedule) << schedule.error().to_text();
    EXPECT_TRUE(schedule->kernels[0].conversions.empty()) << plan::schedule_to_text(*schedule);
    const auto& values = schedule->kernels[0].values;
    const auto read = std::find_if(values.begin(), values.end(),
                                   [](const plan::ValuePlan& v) { return v.value == "matmul:B_local"; });
    EXPECT_TRUE(read != values.end() && read->fragment) << plan::schedule_to_text(*schedule);
    // No warp decodes what another decodes.
    for (const plan::ValuePlan& v : values)
      if (v.value == "matmul:B_dequantize_local") {
        EXPECT_EQ(v.fragment->replicas(), 1);
      }
  }
}

}  // namespace
}  // namespace tilegen::schedule
