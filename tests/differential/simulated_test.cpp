// Every program of tests/files on this machine and on the simulator of each GPU generation against the
// interpreter: the same values and no finding, on ragged and on round dimensions, under several orders of
// warps and both times at which copies land.
//   TILEGEN_LONG=1      more launches
//   TILEGEN_SHOW=1      what each program came to
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>

#include "files.h"

namespace tilegen::differential {
namespace {

namespace fs = std::filesystem;
using Kind = Outcome::Kind;

// Launches with each dim near one of a few sizes; the seeds are orders of warps and times of landing, one for
// each size where the programs take turns.
std::vector<Launch> launches(const ir::Program& p, size_t number) {
  const std::vector<std::vector<int64_t>> sizes = {
      {77, 45, 139, 33}, {128, 128, 128, 128}, {1, 3, 2, 1}, {160, 64, 96, 192}};
  std::vector<Launch> list;
  const size_t count = long_run() ? sizes.size() : 2;
  for (size_t s = 0; s < count; ++s)
    for (uint64_t turn = 0; turn < (long_run() ? 6u : 1u); ++turn) {
      Launch launch = launch_near(p, sizes[s]);
      launch.seed = s * 10 + 1 + (number + turn) % 6;
      launch.magnitude = 4;
      launch.bound = {2e-3, 8};  // sums are exact; functions of them are not
      list.push_back(std::move(launch));
    }
  return list;
}

// One run of the interpreter for all targets of a program.
void run(const std::function<std::vector<std::string>(size_t number)>& targets_of) {
  std::map<Kind, int> counts;
  size_t number = 0;
  for (const fs::path& file : program_files()) {
    Subject subject(text_of(file), targets_of(number));
    if (!subject.invalid().empty()) continue;  // files of the parser's tests
    for (const Launch& launch : launches(subject.program(), number++)) {
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

TEST(SimulatedFiles, AgreeWithTheInterpreter) {
  run([](size_t number) {
    std::vector<std::string> targets = {"sim:sm_80", "sim:sm_90", "sim:sm_90a"};
    if (!long_run()) targets.erase(targets.begin() + static_cast<std::ptrdiff_t>(number % 2));
    targets.emplace_back("host");
    return targets;
  });
}

// Waves of 64 lanes; the two differ in their products.
TEST(SimulatedFiles, OfWavesAgreeWithTheInterpreter) {
  run([](size_t number) {
    return long_run() ? std::vector<std::string>{"sim:gfx942", "sim:gfx90a"}
                      : std::vector<std::string>{number % 2 == 0 ? "sim:gfx942" : "sim:gfx90a"};
  });
}

}  // namespace
}  // namespace tilegen::differential
