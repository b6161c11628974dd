// Mutants of the programs of tests/files.
#include "mutants.h"

#include "files.h"

namespace tilegen::differential {
namespace {

// Ragged sizes that forms with guards take, and sizes that only those without do; floats among which zeros
// times what should not have been read are not zero.
std::vector<Launch> mutant_launches(const ir::Program& p) {
  std::vector<Launch> list;
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{
           {136, 72, 200, 88}, {77, 45, 139, 33}, {256, 128, 160, 128}, {1, 3, 2, 1}})
    for (Data data : {Data::integers, Data::integers_specials}) {
      if (data == Data::integers_specials && sizes[0] == 256) continue;
      Launch launch = launch_near(p, sizes);
      launch.seed = list.size() + 1;
      launch.data = data;
      launch.magnitude = 4;
      list.push_back(std::move(launch));
    }
  return list;
}

TEST(Mutants, OfTheProgramsOfTheTestFiles) {
  std::vector<MutantCase> cases;
  for (const auto& file : program_files()) {
    const Subject subject(text_of(file));
    if (!subject.invalid().empty()) continue;  // files of the parser's tests
    cases.push_back(
        {file.parent_path().filename() / file.filename(), text_of(file), mutant_launches(subject.program())});
  }
  expect_named(judge_all(cases, mutant_sample(13, 12)));
}

}  // namespace
}  // namespace tilegen::differential
