// Every program of regressions/ on all executors. A file states its launches in comments:
//   ; launch n=8 m=3 seed=2 data=specials
// data is integers, specials, reals or bits; floats are compared exactly unless "ulps=k" is given.
#include <gtest/gtest.h>

#include <cstdlib>

#include "files.h"
#include "schedule/plan_program.h"

namespace tilegen::differential {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> programs() { return programs_in(test_data("regressions")); }

Data data_of(const std::string& name) {
  return name == "specials" ? Data::integers_specials
         : name == "reals"  ? Data::reals
         : name == "bits"   ? Data::bit_patterns
                            : Data::integers;
}

std::vector<Launch> launches(const std::string& text) {
  std::vector<Launch> list;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("; launch", 0) != 0) continue;
    Launch launch;
    std::istringstream words(line.substr(8));
    for (std::string word; words >> word;) {
      const size_t eq = word.find('=');
      const std::string name = word.substr(0, eq), value = word.substr(eq + 1);
      if (name == "seed")
        launch.seed = std::stoull(value);
      else if (name == "data")
        launch.data = data_of(value);
      else if (name == "ulps")
        launch.bound = Bound::of_ulps(std::stod(value));
      else
        launch.dims[name] = std::stoll(value);
    }
    list.push_back(std::move(launch));
  }
  return list;
}

// Every target of the feature tables, and simulators of the newer generation beside the oldest.
std::vector<std::string> targets() {
  std::vector<std::string> list = targets_with_simulator();
  if (!std::getenv("TILEGEN_TARGETS")) list.insert(list.end(), {"sim:sm_90", "sim:sm_90a"});
  return list;
}

// One test per file, named after it.
class Regression : public testing::TestWithParam<fs::path> {};

TEST_P(Regression, ExecutorsAgree) {
  const fs::path& file = GetParam();
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  Subject subject(text.str(), targets());
  ASSERT_EQ(subject.invalid(), "");
  EXPECT_EQ(subject.program().name, file.stem());
  const std::vector<Launch> list = launches(text.str());
  EXPECT_FALSE(list.empty()) << "states no launch";
  for (const Launch& launch : list) {
    const Outcome o = subject.compare(launch);
    EXPECT_EQ(o.kind, Outcome::Kind::agree) << to_text({"", launch}) << kind_name(o.kind) << ": " << o.text;
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
