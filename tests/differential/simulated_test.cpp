// Every program of tests/files on the simulator of each GPU generation against the interpreter: the same
// values and no finding, on ragged and on round dimensions, under several orders of warps and both times at
// which copies land.
//   TILEGEN_LONG=1      more launches
//   TILEGEN_SHOW=1      what each program came to
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "files.h"

namespace tilegen::differential {
namespace {

namespace fs = std::filesystem;
using Kind = Outcome::Kind;

// Launches with each dim near one of a few sizes.
std::vector<Launch> launches(const ir::Program& p) {
  const std::vector<std::vector<int64_t>> sizes = {
      {77, 45, 139, 33}, {128, 128, 128, 128}, {1, 3, 2, 1}, {160, 64, 96, 192}};
  std::vector<Launch> list;
  const size_t count = long_run() ? sizes.size() : 2;
  for (size_t s = 0; s < count; ++s)
    for (uint64_t seed = 1; seed <= (long_run() ? 6u : 2u); ++seed) {
      Launch launch = launch_near(p, sizes[s]);
      launch.seed = s * 10 + seed;
      launch.magnitude = 4;
      launch.bound = {2e-3, 8};  // sums are exact; functions of them are not
      list.push_back(std::move(launch));
    }
  return list;
}

// One run of the interpreter for all targets.
TEST(SimulatedFiles, AgreeWithTheInterpreter) {
  std::map<Kind, int> counts;
  for (const fs::path& file : program_files()) {
    Subject subject(text_of(file), {"sim:sm_80", "sim:sm_90", "sim:sm_90a"});
    if (!subject.invalid().empty()) continue;  // files of the parser's tests
    for (const Launch& launch : launches(subject.program())) {
      const Outcome o = subject.compare(launch);
      ++counts[o.kind];
      if (std::getenv("TILEGEN_SHOW"))
        std::cout << file.filename() << ": " << kind_name(o.kind) << " " << o.text << "\n";
      EXPECT_FALSE(o.is_defect()) << file << " " << kind_name(o.kind) << ": " << o.text
                                  << to_text({"", launch});
      if (o.kind != Kind::agree) break;
    }
  }
  std::cout << counts[Kind::agree] << " launches agree, " << counts[Kind::refused] << " programs refused, "
            << counts[Kind::invalid] << " not run\n";
  EXPECT_GT(counts[Kind::agree], 20);
  EXPECT_LE(counts[Kind::refused] * 4, counts[Kind::agree]);
}

}  // namespace
}  // namespace tilegen::differential
