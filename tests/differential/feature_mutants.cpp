// Mutants of the programs of the feature tables, which this program takes from the tests that write them.
#include <map>

#include "matrix.h"
#include "mutants.h"

namespace tilegen::differential {
namespace {

constexpr size_t kMaxLaunches = 4;  // of one program
// Their programs take seconds each, or most of their predicates are jumps of the program, of which values
// alone tell.
bool is_rare(std::string_view suite) {
  return suite == "Control" || suite == "Attention" || suite == "AttentionSplit" ||
         suite == "ThreadWrittenOperand" || suite == "WarpgroupProduct";
}
constexpr int64_t kRarer = 5;

class FeatureMutants : public testing::Environment {
 public:
  void SetUp() override {
    take_case = [this](const std::string& text, const Launch& launch) {
      auto [at, fresh] = numbers_.try_emplace(text, cases_.size());
      if (fresh) {
        const auto* test = testing::UnitTest::GetInstance()->current_test_info();
        cases_.push_back({std::string(test->test_suite_name()) + "." + test->name() + " #" +
                              std::to_string(++of_test_[test->name()]),
                          text,
                          {},
                          is_rare(test->test_suite_name()) ? kRarer : 1});
      }
      auto& launches = cases_[at->second].launches;
      if (launches.size() < kMaxLaunches) launches.push_back(launch);
    };
  }

  void TearDown() override {
    take_case = nullptr;
    EXPECT_FALSE(cases_.empty());
    std::cout << cases_.size() << " programs\n";
    expect_named(judge_all(cases_, mutant_sample(20, 12)));
  }

 private:
  std::vector<MutantCase> cases_;
  std::map<std::string, size_t> numbers_;
  std::map<std::string, int> of_test_;
};

const testing::Environment* const kEnvironment = testing::AddGlobalTestEnvironment(new FeatureMutants);

}  // namespace
}  // namespace tilegen::differential
