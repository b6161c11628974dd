// Every program of regressions/ on all executors. A file states its launches in comments (files.h).
#include <gtest/gtest.h>

#include <cstdlib>

#include "files.h"
#include "open_values.h"
#include "sanitized_run.h"
#include "schedule/plan_program.h"

namespace tilegen::differential {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> programs() { return programs_in(test_data("regressions")); }

// Targets of the feature tables, and the simulator of copy engines beside them.
std::vector<std::string> targets() {
  std::vector<std::string> list = targets_with_simulators();
  if (!std::getenv("TILEGEN_TARGETS")) list.emplace_back("sim:sm_90a");
  return list;
}

// One test per file, named after it.
class Regression : public testing::TestWithParam<fs::path> {};

TEST_P(Regression, ExecutorsAgree) {
  const fs::path& file = GetParam();
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  Subject subject(text.str(), covering(targets(), text.str()));
  ASSERT_EQ(subject.invalid(), "");
  EXPECT_EQ(subject.program().name, file.stem());
  const std::vector<Launch> list = stated_launches(text.str());
  EXPECT_FALSE(list.empty()) << "states no launch";
  for (const Launch& launch : list) {
    OpenValues open(subject.program(), launch);
    const Outcome o = subject.compare(launch, [&](const auto& memory, const auto& expected, const auto& got) {
      const std::string d = memory.compare(expected, got, launch.bound);
      if (d.empty() || run_sanitized(subject.program(), memory.slots(memory.fresh(false)), {}).kind !=
                           SanitizedResult::Kind::defined)
        return d;
      return open.differ(memory, expected, got);
    });
    // A simulator that refuses what it served once has a defect, too.
    EXPECT_TRUE(o.is_fine() && o.text.rfind("sim:", 0) != 0)
        << to_text({"", launch}) << kind_name(o.kind) << ": " << o.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Regression, testing::ValuesIn(programs()),
                         [](const auto& file) { return file.param.stem().string(); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Regression);

TEST(Regressions, AreThere) { EXPECT_FALSE(programs().empty()); }

TEST(Regressions, PlanForAGpuOrSayWhy) {
  const auto target = target::find_target("sm_80");
  ASSERT_TRUE(target);
  for (const fs::path& file : programs()) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    const Subject subject(text.str());
    if (!subject.invalid().empty()) continue;
    const auto schedule = schedule::plan_program(subject.program(), *target, {});
    EXPECT_TRUE(schedule || !schedule.error().diagnostics[0].hint.empty()) << file;
  }
}

}  // namespace
}  // namespace tilegen::differential
